// What is in view is saved with the notebook, whether its kernel lives or not.
//
// JupyterLab's and Notebook's widget manager saves only models whose kernel lives: one save after a restart, or in a
// notebook that was opened to be read, would drop every view and all that was found. Where the manager is such a one, its
// list of what is saved is completed by what outputs of the notebook show. Elsewhere (VS Code, pages) nothing is done.

const SHOWN = "application/vnd.jupyter.widget-view+json";

export function keepWhenSaved(manager) {
  const models = manager?._modelsSync, cells = manager?.context?.model?.cells;
  if (typeof manager?.get_state_sync !== "function" || !models || !cells || manager.keepsWhatIsShown) return;
  manager.keepsWhatIsShown = true;
  const states = manager.get_state_sync.bind(manager);
  manager.get_state_sync = (options) => {
    const dead = [...manager._modelsSync.values()].filter((model) => model._comm_live === false);
    let all;
    try {
      for (const model of dead) model._comm_live = true;
      all = states(options);
    } finally {
      for (const model of dead) model._comm_live = false;
    }
    const shown = reached(all.state, shownBy(manager.context.model.cells));
    for (const { model_id: id } of dead) if (!shown.has(id)) delete all.state[id];
    return all;
  };
}

// Models that outputs of a notebook's cells show.
function shownBy(cells) {
  const found = [];
  for (const cell of cells) {
    for (const output of cell.toJSON().outputs ?? []) if (output.data?.[SHOWN]) found.push(output.data[SHOWN].model_id);
  }
  return found;
}

// These models, and those that they refer to.
function reached(states, from) {
  const seen = new Set(), next = [...from];
  while (next.length) {
    const id = next.pop();
    if (seen.has(id) || !states[id]) continue;
    seen.add(id);
    for (const [, other] of JSON.stringify(states[id].state).matchAll(/"IPY_MODEL_([^"]+)"/g)) next.push(other);
  }
  return seen;
}
