#define _GNU_SOURCE
#include <stdio.h>
#include <stdint.h>
#include <stdbool.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <omp.h>
typedef uint16_t ggml_half;
typedef struct { ggml_half d, dmin; uint8_t scales[12]; uint8_t qs[128]; } block_q4_K;
typedef struct { uint8_t ql[128]; uint8_t qh[64]; int8_t scales[16]; ggml_half d; } block_q6_K;
typedef struct { float d; int8_t qs[256]; int16_t bsums[16]; } block_q8_K;
typedef struct { ggml_half d; uint8_t qh[4]; uint8_t qs[16]; } block_q5_0;
typedef struct { ggml_half d; int8_t qs[32]; } block_q8_0;
enum { GGML_TYPE_F32=0, GGML_TYPE_Q5_0=6, GGML_TYPE_Q8_0=8, GGML_TYPE_Q4_K=12, GGML_TYPE_Q6_K=14 };
struct ggml_tensor { int type; void*buffer; int64_t ne[4]; size_t nb[4]; void*data; };
#include <immintrin.h>
static float GGML_CPU_FP16_TO_FP32(uint16_t h){ return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h))); }
static uint16_t GGML_CPU_FP32_TO_FP16(float f){ return _mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(f),0),0); }
#define h16 GGML_CPU_FP32_TO_FP16
#include "qgemm.inc"
// processor time of one thread, which other programs on the machine change little
static double now(){ struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID,&t); return t.tv_sec+t.tv_nsec*1e-9; }
static double weight(int type, const char*row, int k){    // in double precision
  if(type==GGML_TYPE_Q4_K){ const block_q4_K*w=(const block_q4_K*)row+k/256; k%=256; int d,m; qg_scale4(k/32,w->scales,&d,&m);
    int q=(k/32%2)? w->qs[k/64*32+k%32]>>4 : w->qs[k/64*32+k%32]&15; return (double)GGML_CPU_FP16_TO_FP32(w->d)*d*q-(double)GGML_CPU_FP16_TO_FP32(w->dmin)*m; }
  if(type==GGML_TYPE_Q6_K){ const block_q6_K*w=(const block_q6_K*)row+k/256; k%=256; int h=k/128,l=k%32,p=(k%128)/32; uint8_t ql=w->ql[h*64+(p%2)*32+l];
    int q=((p<2? ql&15:ql>>4)|(((w->qh[h*32+l]>>(2*p))&3)<<4))-32; return (double)GGML_CPU_FP16_TO_FP32(w->d)*w->scales[k/16]*q; }
  if(type==GGML_TYPE_Q5_0){ const block_q5_0*w=(const block_q5_0*)row+k/32; k%=32; uint32_t h; memcpy(&h,w->qh,4);
    int q=(k<16? w->qs[k]&15 : w->qs[k-16]>>4) | ((h>>k)&1)<<4; return (double)GGML_CPU_FP16_TO_FP32(w->d)*(q-16); }
  const block_q8_0*w=(const block_q8_0*)row+k/32; return (double)GGML_CPU_FP16_TO_FP32(w->d)*w->qs[k%32];
}
#ifdef QG_VNNI
static void check_quant(void){    // as llama.cpp's quantize_row_q8_K_ref
  int bad=0; float x[256]; block_q8_K y;
  for(int t=0;t<20000;t++){ for(int i=0;i<256;i++) x[i]= t%7==0? (float)(rand()%9-4) : (rand()%20001-10000)*1e-3f*(t%5); qg_quantK(x,&y,256);
    float max=0,amax=0; for(int i=0;i<256;i++) if(fabsf(x[i])>amax){ amax=fabsf(x[i]); max=x[i]; }
    if(!amax){ bad+= y.d!=0; continue; } float is=-127.f/max; bad+= y.d!=1/is;
    for(int j=0;j<16;j++){ int s=0; for(int i=0;i<16;i++){ volatile float p=is*x[j*16+i]; float f=p+12582912.f; int v; memcpy(&v,&f,4); v=(v&0x7fffff)-0x400000; if(v>127)v=127; s+=v; bad+= v!=y.qs[j*16+i]; } bad+= s!=y.bsums[j]; } }
  printf("quantised values that differ from llama.cpp's: %d\n",bad);
}
#endif
int main(int argc,char**argv){
  const struct { const char*name; int type,kind,K,N; } cases[]={ {"Q4_K",GGML_TYPE_Q4_K,QG_Q4,1536,8960},{"Q6_K",GGML_TYPE_Q6_K,QG_Q6,1536,8960},
    {"Q5_0",GGML_TYPE_Q5_0,QG_Q0,896,4864},{"Q8_0",GGML_TYPE_Q8_0,QG_Q0,896,4864} };
#ifdef QG_VNNI
  check_quant(); const int n_cases=4;
#else
  const int n_cases=2;
#endif
  for(int z=0; z<n_cases; z++){
    int K=cases[z].K,N=cases[z].N,M=argc>1?atoi(argv[1]):90,type=cases[z].type,kind=cases[z].kind;
    size_t bs= type==GGML_TYPE_Q4_K?sizeof(block_q4_K):type==GGML_TYPE_Q6_K?sizeof(block_q6_K):type==GGML_TYPE_Q5_0?sizeof(block_q5_0):sizeof(block_q8_0);
    int bk= kind==QG_Q0?32:256, nb=K/bk; char*W=malloc((size_t)N*nb*bs); for(size_t i=0;i<(size_t)N*nb*bs;i++)W[i]=rand();
    for(size_t i=0;i<(size_t)N*nb;i++){ char*b=W+i*bs; uint16_t h=h16((type==GGML_TYPE_Q4_K?0.001f:0.01f)*(rand()%100)),h2=h16(0.001f*(rand()%100));
      if(type==GGML_TYPE_Q6_K)((block_q6_K*)b)->d=h; else memcpy(b,&h,2); if(type==GGML_TYPE_Q4_K)((block_q4_K*)b)->dmin=h2; }
    size_t row=qg_act_row(kind,K); char*X=malloc(row*M); float*xd=malloc(sizeof(float)*M*K); int8_t*xq=malloc(M*K);    // values and their scales, to compare
    for(int m=0;m<M;m++){ char*r=X+m*row;
      for(int b=0;b<nb;b++){ float d=0.01f*(rand()%50); int sum=0;
        for(int k=0;k<bk;k++){ int v=rand()%255-127; if(m==0&&b<2)v=127; xq[(size_t)m*K+b*bk+k]=v; xd[(size_t)m*K+b*bk+k]=d; sum+=v; }
        if(kind==QG_Q0){ ((float*)r)[b]=d; ((int32_t*)r)[nb+b]=sum; memcpy(r+8*nb+32*b,xq+(size_t)m*K+b*bk,32); }
        else { block_q8_K*x=(block_q8_K*)r+b; x->d=d; memcpy(x->qs,xq+(size_t)m*K+b*bk,256); for(int j=0;j<16;j++){ int s=0; for(int k=0;k<16;k++)s+=x->qs[j*16+k]; x->bsums[j]=s; } } } }
    struct ggml_tensor a={type,0,{K,N,1,1},{bs,nb*bs,0,0},W}; size_t gs=qg_group_size(kind,K); int G=N/QG_COLS;
    char*P=qg_alloc(gs*G); for(int g=0;g<G;g++) qg_pack_group(&a,g,P);
    float*D=qg_alloc(sizeof(float)*(size_t)M*N);
    for(int t=1;t<=2;t++){ qg_groups(kind,type,P,K,X,row,M,D,N,0,G);
     double best=1e9; for(int r=0;r<25;r++){ double t0=now();
       #pragma omp parallel num_threads(t)
       { int i=omp_get_thread_num(); qg_groups(kind,type,P,K,X,row,M,D,N,G/2/t*2*i,i==t-1?G:G/2/t*2*(i+1)); } double e=now()-t0; if(e<best)best=e; }
     printf("%s threads %d: %.1f GOPS\n",cases[z].name,t,2.0*K*N*M/best/1e9);}
    double worst=0; for(int t=0;t<3000;t++){ int m=t<20?0:rand()%M,n=rand()%N; double s=0,abs_=0;
      for(int k=0;k<K;k++){ double p=weight(type,W+(size_t)n*nb*bs,k)*xd[(size_t)m*K+k]*xq[(size_t)m*K+k]; s+=p; abs_+=fabs(p); }
      double e=fabs(s-D[(size_t)m*N+n])/(abs_+1e-9); if(e>worst)worst=e; }
    printf("%s worst relative error %.2e\n",cases[z].name,worst);
  }
}
