// focal_loss_pow, side flawed: four elements a thread, 16 bytes an access
#include "../tried.cuh"

// As it is in the study.
__global__ void focal_loss(const float *logit, const unsigned char *label, float *loss, float alpha, float gamma, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float p = 1.f / (1.f + expf(-logit[i]));
    float pt = label[i] ? p : 1.f - p;
    float a = label[i] ? alpha : 1.f - alpha;
    loss[i] = -a * powf(1.f - pt, gamma) * logf(fmaxf(pt, 1e-7f));
}
// The same arithmetic, of values that are in registers.
__device__ __forceinline__ float focal(float logit, unsigned char label, float alpha, float gamma) {
    float p = 1.f / (1.f + expf(-logit));
    float pt = label ? p : 1.f - p;
    float a = label ? alpha : 1.f - alpha;
    return -a * powf(1.f - pt, gamma) * logf(fmaxf(pt, 1e-7f));
}
__global__ void focal_loss_quads(const float *__restrict__ logit, const unsigned char *__restrict__ label, float *__restrict__ loss, float alpha, float gamma, int n) {
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 3 < n) {
        const float4 x = *reinterpret_cast<const float4 *>(logit + i);
        const uchar4 l = *reinterpret_cast<const uchar4 *>(label + i);
        *reinterpret_cast<float4 *>(loss + i) = make_float4(focal(x.x, l.x, alpha, gamma), focal(x.y, l.y, alpha, gamma), focal(x.z, l.z, alpha, gamma), focal(x.w, l.w, alpha, gamma));
    } else {
        for (; i < n; i++) loss[i] = focal(logit[i], label[i], alpha, gamma);
    }
}
// The same without __restrict__ and without the remainder, which four divides here.
__global__ void focal_loss_quads_plain(const float4 *logit, const uchar4 *label, float4 *loss, float alpha, float gamma, int quads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    const float4 x = logit[i];
    const uchar4 l = label[i];
    loss[i] = make_float4(focal(x.x, l.x, alpha, gamma), focal(x.y, l.y, alpha, gamma), focal(x.z, l.z, alpha, gamma), focal(x.w, l.w, alpha, gamma));
}
__global__ void focal_loss_pairs(const float2 *logit, const uchar2 *label, float2 *loss, float alpha, float gamma, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs) return;
    const float2 x = logit[i];
    const uchar2 l = label[i];
    loss[i] = make_float2(focal(x.x, l.x, alpha, gamma), focal(x.y, l.y, alpha, gamma));
}
// Four elements a thread, the arithmetic in a loop that is not unrolled: the code of one element.
__global__ void focal_loss_quads_rolled(const float4 *logit, const uchar4 *label, float4 *loss, float alpha, float gamma, int quads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    float4 x = logit[i];
    uchar4 l = label[i];
#pragma unroll 1
    for (int k = 0; k < 4; k++) {  // around the ring
        x = make_float4(x.y, x.z, x.w, focal(x.x, l.x, alpha, gamma));
        l = make_uchar4(l.y, l.z, l.w, l.x);
    }
    loss[i] = x;
}

int main() {
    const int n = 1 << 24;
    const float *x = drawn<float>(n, -6, 6, 1);
    const unsigned char *label = drawn<unsigned char>(n, 0, 2, 2);
    float *loss = get<float>(n);
    auto x4 = reinterpret_cast<const float4 *>(x);
    auto l4 = reinterpret_cast<const uchar4 *>(label);
    auto out4 = reinterpret_cast<float4 *>(loss);
    judge({
        {"as_it_is", [=] { focal_loss<<<n / 256, 256>>>(x, label, loss, 0.25f, 2.f, n); }},
        {"quads", [=] { focal_loss_quads<<<n / 1024, 256>>>(x, label, loss, 0.25f, 2.f, n); }},
        {"quads_plain", [=] { focal_loss_quads_plain<<<n / 1024, 256>>>(x4, l4, out4, 0.25f, 2.f, n / 4); }},
        {"quads_rolled", [=] { focal_loss_quads_rolled<<<n / 1024, 256>>>(x4, l4, out4, 0.25f, 2.f, n / 4); }},
        {"pairs", [=] { focal_loss_pairs<<<n / 512, 256>>>(reinterpret_cast<const float2 *>(x), reinterpret_cast<const uchar2 *>(label), reinterpret_cast<float2 *>(loss), 0.25f, 2.f, n / 2); }}}, {{loss, size_t(n)}});
}
