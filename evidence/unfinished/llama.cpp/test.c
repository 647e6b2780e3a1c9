#include <stdio.h>
#include <stdint.h>
#include <stdbool.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <omp.h>
#define QK 256
typedef uint16_t ggml_half;
typedef struct { ggml_half d, dmin; uint8_t scales[12]; uint8_t qs[128]; } block_q4_K;
typedef struct { uint8_t ql[128]; uint8_t qh[64]; int8_t scales[16]; ggml_half d; } block_q6_K;
typedef struct { float d; int8_t qs[256]; int16_t bsums[16]; } block_q8_K;
enum { GGML_TYPE_F32=0, GGML_TYPE_Q4_K=12, GGML_TYPE_Q6_K=14 };
struct ggml_tensor { int type; void*buffer; int64_t ne[4]; size_t nb[4]; void*data; };
#include <immintrin.h>
static float GGML_CPU_FP16_TO_FP32(uint16_t h){ return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h))); }
static uint16_t h16(float f){ return _mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(f),0),0); }
#include "qgemm.inc"
static double now(){ struct timespec t; clock_gettime(CLOCK_MONOTONIC,&t); return t.tv_sec+t.tv_nsec*1e-9; }
int main(){
  for(int six=0; six<2; six++){
    int K=1536,N=8960,M=90; int nsb=K/256; size_t bs= six?sizeof(block_q6_K):sizeof(block_q4_K);
    char*W=malloc((size_t)N*nsb*bs); for(size_t i=0;i<(size_t)N*nsb*bs;i++)W[i]=rand();
    for(size_t i=0;i<(size_t)N*nsb;i++){ if(six)((block_q6_K*)W)[i].d=h16(0.01f*(rand()%100)); else {((block_q4_K*)W)[i].d=h16(0.001f*(rand()%100));((block_q4_K*)W)[i].dmin=h16(0.001f*(rand()%100));} }
    block_q8_K*X=malloc(sizeof(block_q8_K)*nsb*M); for(int i=0;i<nsb*M;i++){ X[i].d=0.01f*(rand()%50); for(int j=0;j<16;j++){int s=0; for(int k=0;k<16;k++){int v=rand()%255-127; if(i<2)v=127; X[i].qs[j*16+k]=v; s+=v;} X[i].bsums[j]=s;} }
    struct ggml_tensor a={six?GGML_TYPE_Q6_K:GGML_TYPE_Q4_K,0,{K,N,1,1},{bs,nsb*bs,0,0},W};
    qg_sb*P=aligned_alloc(64,sizeof(qg_sb)*(size_t)(N/8)*nsb);
    for(int g=0;g<N/8;g++) qg_pack_group(&a,g,P+(size_t)g*nsb);
    float*D=malloc(sizeof(float)*(size_t)M*N);
    for(int t=1;t<=2;t++){ qg_groups(six,P,nsb,(char*)X,nsb*sizeof(block_q8_K),M,D,N,0,N/8);
     double best=1e9; for(int r=0;r<25;r++){ double t0=now();
       #pragma omp parallel num_threads(t)
       { int i=omp_get_thread_num(); qg_groups(six,P,nsb,(char*)X,nsb*sizeof(block_q8_K),M,D,N,N/8/t*i,N/8/t*(i+1)); } double e=now()-t0; if(e<best)best=e; }
     printf("six %d threads %d: %.1f GOPS\n",six,t,2.0*K*N*M/best/1e9);}
    double worst=0; for(int t=0;t<300;t++){ int m=t<20?0:rand()%M,n=rand()%N; double s=0,abs_=0; for(int b=0;b<nsb;b++){ block_q8_K*x=X+m*nsb+b;
       if(!six){ block_q4_K*w=(block_q4_K*)W+(size_t)n*nsb+b; for(int k=0;k<256;k++){int d,mm; qg_scale4(k/32,w->scales,&d,&mm); int q= (k/32%2)? w->qs[k/64*32+k%32]>>4 : w->qs[k/64*32+k%32]&15; double v=(double)GGML_CPU_FP16_TO_FP32(w->d)*d*q-(double)GGML_CPU_FP16_TO_FP32(w->dmin)*mm; s+=v*x->d*x->qs[k]; abs_+=fabs(v*x->d*x->qs[k]);} }
       else { block_q6_K*w=(block_q6_K*)W+(size_t)n*nsb+b; for(int k=0;k<256;k++){ int h=k/128,l=k%32,p=(k%128)/32; uint8_t ql=w->ql[h*64+(p%2)*32+l]; int q=((p<2? ql&15:ql>>4)|(((w->qh[h*32+l]>>(2*p))&3)<<4))-32; double v=(double)GGML_CPU_FP16_TO_FP32(w->d)*w->scales[k/16]*q; s+=v*x->d*x->qs[k]; abs_+=fabs(v*x->d*x->qs[k]);} } }
       double e=fabs(s-D[(size_t)m*N+n])/(abs_+1e-9); if(e>worst)worst=e; }
    printf("six %d worst relative error %.2e\n",six,worst);
  }
}
