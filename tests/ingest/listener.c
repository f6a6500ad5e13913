/* What a profiler is to NVTX: a library that a program loads because NVTX_INJECTION64_PATH names it. It writes every
 * call to the file that NVTX_LISTENER_OUT names, a line each:
 *
 *   kind, thread, nanoseconds, domain, category, payload, text          (tab between them, "-" for none)
 *
 * with kind one of domain, category, push, pop. Strings may be registered. */
#define _GNU_SOURCE
#include <nvtx3/nvToolsExt.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static FILE* out;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static intptr_t domains;

static void line(char const* kind, nvtxDomainHandle_t domain, uint32_t category, char const* payload, char const* text) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&guard);
    fprintf(out, "%s\t%ld\t%lld\t%ld\t%u\t%s\t%s\n", kind, syscall(SYS_gettid),
            (long long)now.tv_sec * 1000000000LL + now.tv_nsec, (long)(intptr_t)domain, category, payload, text);
    fflush(out);
    pthread_mutex_unlock(&guard);
}

static nvtxDomainHandle_t create(char const* name) {
    pthread_mutex_lock(&guard);
    nvtxDomainHandle_t domain = (nvtxDomainHandle_t)++domains;
    pthread_mutex_unlock(&guard);
    line("domain", domain, 0, "-", name);
    return domain;
}

static void name_category(nvtxDomainHandle_t domain, uint32_t category, char const* name) {
    line("category", domain, category, "-", name);
}

static nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, char const* text) {
    (void)domain;
    return (nvtxStringHandle_t)strdup(text);
}

static int push(nvtxDomainHandle_t domain, nvtxEventAttributes_t const* event) {
    char const* text = event->messageType == NVTX_MESSAGE_TYPE_REGISTERED ? (char const*)event->message.registered
                                                                         : event->message.ascii;
    char payload[32] = "-";
    if (event->payloadType == NVTX_PAYLOAD_TYPE_INT64) snprintf(payload, 32, "%lld", (long long)event->payload.llValue);
    line("push", domain, event->category, payload, text ? text : "");
    return 0;
}

static int pop(nvtxDomainHandle_t domain) {
    line("pop", domain, 0, "-", "");
    return 0;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of) {
    NvtxExportTableCallbacks const* callbacks = table_of(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable functions = NULL;
    unsigned int size = 0;
    out = fopen(getenv("NVTX_LISTENER_OUT"), "w");
    if (!out || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &size)) return 0;
    *functions[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *functions[NVTX_CBID_CORE2_DomainNameCategoryA] = (NvtxFunctionPointer)name_category;
    *functions[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_string;
    *functions[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *functions[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
