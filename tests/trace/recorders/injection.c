/* A profiler as NVTX sees one: writes down domains, names of categories and ranges, a line each, to $NVTX_SEEN. */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *seen;

static nvtxDomainHandle_t NVTX_API domain_create(const char *name) {
  fprintf(seen, "domain %s\n", name);
  return (nvtxDomainHandle_t)strdup(name);
}

static nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t domain, const char *text) {
  return (nvtxStringHandle_t)strdup(text);
}

static void NVTX_API name_category(nvtxDomainHandle_t domain, uint32_t category, const char *name) {
  fprintf(seen, "category %s %u %s\n", (const char *)domain, category, name);
}

static void begin(const char *what, nvtxDomainHandle_t domain, const nvtxEventAttributes_t *it) {
  const char *text = it->messageType == NVTX_MESSAGE_TYPE_REGISTERED ? (const char *)it->message.registered
                     : it->messageType == NVTX_MESSAGE_TYPE_ASCII    ? it->message.ascii
                                                                     : "?";
  fprintf(seen, "%s %s|%s|%u", what, (const char *)domain, text, it->category);
  if (it->payloadType == NVTX_PAYLOAD_TYPE_INT64) fprintf(seen, "|%lld", (long long)it->payload.llValue);
  if (it->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64) fprintf(seen, "|%llu", (unsigned long long)it->payload.ullValue);
  fprintf(seen, "\n");
}

static int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *it) {
  begin("push", domain, it);
  return 0;
}

static nvtxRangeId_t NVTX_API range_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *it) {
  static nvtxRangeId_t last;
  begin("start", domain, it);
  return ++last;
}

static void NVTX_API range_end(nvtxDomainHandle_t domain, nvtxRangeId_t id) {
  fprintf(seen, "end %s|%llu\n", (const char *)domain, (unsigned long long)id);
}

static int NVTX_API pop(nvtxDomainHandle_t domain) {
  fprintf(seen, "pop %s\n", (const char *)domain);
  return 0;
}

NVTX_DYNAMIC_EXPORT int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const NvtxExportTableCallbacks *callbacks = (const NvtxExportTableCallbacks *)get_export_table(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table = NULL;
  unsigned int size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  seen = fopen(getenv("NVTX_SEEN"), "w");
  if (!seen) return 0;
  setvbuf(seen, NULL, _IOLBF, 0);
  *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)domain_create;
  *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_string;
  *table[NVTX_CBID_CORE2_DomainNameCategoryA] = (NvtxFunctionPointer)name_category;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
  *table[NVTX_CBID_CORE2_DomainRangeStartEx] = (NvtxFunctionPointer)range_start;
  *table[NVTX_CBID_CORE2_DomainRangeEnd] = (NvtxFunctionPointer)range_end;
  *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
  return 1;
}
