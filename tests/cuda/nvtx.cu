// NVTX ranges whose names try to break out of whatever page shows them.
#include <nvtx3/nvToolsExt.h>

#include "common.cuh"

__global__ void inside(float *out) { out[threadIdx.x] = threadIdx.x * 2.0f; }

int main() {
    float *out = device_buffer<float>(128);
    nvtxRangePushA("<script>alert(1)</script>");
    inside<<<1, 32>>>(out);
    nvtxRangePushA("{{7*7}} {% raw %} ${1+1}");
    inside<<<1, 64>>>(out);
    nvtxRangePushA("\"double\" 'single' `back` \\ & &lt; %s \t</style></textarea>-->");
    inside<<<1, 96>>>(out);
    nvtxRangePop();
    // Right-to-left override and isolates, a zero-width space, an emoji, a combining mark.
    nvtxRangePushA("bidi \xe2\x80\xae" "evil\xe2\x81\xa6 x \xe2\x81\xa9\xe2\x80\x8b \xf0\x9f\x94\xa5 e\xcc\x81");
    inside<<<1, 128>>>(out);
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangePop();

    nvtxDomainHandle_t domain = nvtxDomainCreateA("domain <img src=x onerror=alert(2)>");
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.colorType = NVTX_COLOR_ARGB;
    attributes.color = 0xff00aa55;
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    attributes.payload.llValue = -7;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = "with payload, colour and a comma; =cmd|' /C calc'!A0";
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxRangeId_t started = nvtxRangeStartA("start/end range");
    inside<<<2, 32>>>(out);
    CHECK_LAUNCH();
    nvtxRangeEnd(started);
    nvtxDomainRangePop(domain);
    inside<<<3, 32>>>(out);  // outside every range
    CHECK_LAUNCH();
}
