#include <cstdint>
template<int BM,int BN> __global__ void tile(const float*a,float*b){ __shared__ float s[BM][BN]; s[threadIdx.x%BM][threadIdx.y%BN]=a[threadIdx.x]; __syncthreads(); b[threadIdx.x]=s[threadIdx.y%BM][0]; }
template __global__ void tile<32,32>(const float*,float*);
__global__ void plain(float*a){ a[threadIdx.x]=1; }
__global__ void empty(){}
extern __shared__ float dyn[];
__global__ void dynamic(float*a){ dyn[threadIdx.x]=a[threadIdx.x]; __syncthreads(); a[threadIdx.x]=dyn[threadIdx.x^1]; }
__global__ void __launch_bounds__(1024,2) spill(const float*a,float*b,int n){ float v[64]; 
#pragma unroll
 for(int i=0;i<64;i++) v[i]=a[i*n+threadIdx.x]; __syncthreads();
#pragma unroll
 for(int i=0;i<64;i++) for(int j=0;j<4;j++) b[(i*4+j)*n+threadIdx.x]=v[i]*v[(i*7+j)%64]; }
__noinline__ __device__ float helper(float x){ return x*x+1; }
__global__ void calls(float*a){ float buf[32]; for(int i=0;i<32;i++) buf[i]=a[i]; a[threadIdx.x]=helper(buf[(int)a[0]%32]); }
