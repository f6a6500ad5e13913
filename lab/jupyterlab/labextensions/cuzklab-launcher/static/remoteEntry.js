// Launcher entries. A prebuilt JupyterLab extension written by hand: the container that module federation expects, which
// takes the launcher's token and the icon class from the modules that JupyterLab shares, and needs no build.
(() => {
  const NOTEBOOKS = [
    ["tour.ipynb", "cuzklab: tour", "Ten minutes through the workbench"],
    ["workbench.ipynb", "cuzklab: workbench", "Design bench, live view, explorer, kernel bench, author"],
    ["author.ipynb", "cuzklab: author", "Write a design, have it checked, simulated and run"],
    ["kernels.ipynb", "cuzklab: kernels", "How near the kernels are to what this machine can do"],
  ];
  const MARK = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="24"><g fill="#0072B2"><rect x="3" y="4" width="9" height="4" rx="1"/>
    <rect x="8" y="10" width="13" height="4" rx="1" fill="#E69F00"/><rect x="5" y="16" width="10" height="4" rx="1" fill="#009E73"/></g></svg>`;
  let shared = null;

  const highest = async (name) => {
    const versions = shared[name] ?? {};
    const newest = Object.keys(versions).sort((a, b) => b.localeCompare(a, undefined, { numeric: true }))[0];
    if (!newest) throw new Error(`cuzklab-launcher: JupyterLab shares no ${name}`);
    return (await versions[newest].get())();
  };

  async function extension() {
    const { ILauncher } = await highest("@jupyterlab/launcher");
    const { LabIcon } = await highest("@jupyterlab/ui-components");
    const plugin = {
      id: "cuzklab-launcher:plugin",
      description: "Launcher entries for cuzklab's notebooks",
      autoStart: true,
      optional: [ILauncher],
      activate: (app, launcher) => {
        const icon = new LabIcon({ name: "cuzklab:mark", svgstr: MARK });
        NOTEBOOKS.forEach(([path, label, caption], rank) => {
          const command = `cuzklab:open-${path.replace(".ipynb", "")}`;
          app.commands.addCommand(command, {
            label, caption, icon,
            execute: () => app.commands.execute("docmanager:open", { path }),
          });
          // Among the notebooks: a section of its own would come last, below what a small screen shows.
          launcher?.add({ command, category: "Notebook", rank: rank + 1, kernelIconUrl: `data:image/svg+xml,${encodeURIComponent(MARK)}` });
        });
      },
    };
    return () => ({ __esModule: true, default: [plugin] });
  }

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB["cuzklab-launcher"] = {
    init: (scope) => { shared = scope; },
    get: (module) => {
      if (module === "./extension") return extension();
      return Promise.reject(new Error(`cuzklab-launcher has no ${module}`));
    },
  };
})();
