// Attention against double precision, and its speed: g++ -O3 -march=native fa_test.cpp -o fa_test && ./fa_test
// (with -DOLD='"/work/serve/patch/fa_rows.inc"' another version)
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <math.h>
#include <time.h>
#include <immintrin.h>
enum { GGML_TYPE_F32 = 0, GGML_TYPE_F16 = 1 };
struct ggml_tensor { int type; int64_t ne[4]; size_t nb[4]; void * data; ggml_tensor * src[5]; float op_params[4]; };
struct ggml_compute_params { int ith, nth; void * threadpool; };
static int chunk;
static void ggml_threadpool_chunk_set(void *, int n) { chunk = n; }
static int ggml_threadpool_chunk_add(void *, int n) { int c = chunk; chunk += n; return c; }
static void ggml_barrier(void *) {}
static float GGML_CPU_FP16_TO_FP32(uint16_t h) { return _cvtsh_ss(h); }
#ifdef __AVX512F__
inline static __m512 ggml_v_expf(__m512 x) {    // vec.h of ggml
  const __m512 r = _mm512_set1_ps(0x1.8p23f);
  const __m512 z = _mm512_fmadd_ps(x, _mm512_set1_ps(0x1.715476p+0f), r);
  const __m512 n = _mm512_sub_ps(z, r);
  const __m512 b = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.7f7d1cp-20f), _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.62e4p-1f), x));
  const __mmask16 d = _mm512_cmp_ps_mask(_mm512_abs_ps(n), _mm512_set1_ps(192), _CMP_GT_OQ);
  const __m512 u = _mm512_mul_ps(b, b);
  const __m512 j = _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_set1_ps(0x1.0e4020p-7f), b, _mm512_set1_ps(0x1.573e2ep-5f)), u,
      _mm512_fmadd_ps(_mm512_set1_ps(0x1.555e66p-3f), b, _mm512_set1_ps(0x1.fffdb6p-2f))), u, _mm512_fmadd_ps(_mm512_set1_ps(0x1.ffffecp-1f), b, _mm512_set1_ps(1.0F)));
  const __m512 res = _mm512_scalef_ps(j, n);
  if (_mm512_kortestz(d, d)) return res;
  const __m512 zero = _mm512_setzero_ps();
  const __m512 alt = _mm512_mask_blend_ps(_mm512_cmp_ps_mask(n, zero, _CMP_LE_OQ), _mm512_set1_ps(INFINITY), zero);
  return _mm512_mask_blend_ps(d, res, alt);
}
#endif
#ifndef OLD
#define OLD "fa_rows.inc"
#endif
#include OLD
static double now() { timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static float rnd() { return (rand() % 20001 - 10000) * 1e-4f; }
int main() {
    const int cases[][2] = { {128, 6}, {128, 7}, {64, 7}, {64, 6} };
    for (auto & cs : cases) {
        const int D = cs[0], G = cs[1], H = 2, N = 32, KV = 12000, every = 20;
        uint16_t * K = (uint16_t *) malloc(2l * KV * H * D), * V = (uint16_t *) malloc(2l * KV * H * D), * M = (uint16_t *) malloc(2l * N * KV);
        float * Q = (float *) malloc(4l * N * H * G * D), * O = (float *) malloc(4l * N * H * G * D);
        for (long i = 0; i < (long) KV * H * D; i++) { K[i] = _cvtss_sh(rnd(), 0); V[i] = _cvtss_sh(rnd(), 0); }
        for (long i = 0; i < (long) N * H * G * D; i++) Q[i] = 4 * rnd();
        for (int n = 0; n < N; n++) for (int i = 0; i < KV; i++) M[(long) n * KV + i] = n == 1 ? (i == 77 ? 0 : 0xFC00) : n == 2 ? 0xFC00 : (i < 120 || i % every == n % every) ? 0 : 0xFC00;
        ggml_tensor q = {0, {D, N, H * G, 1}, {4, (size_t) 4 * H * G * D, (size_t) 4 * D, 0}, Q}, k = {1, {D, KV, H, 1}, {2, (size_t) 2 * H * D, (size_t) 2 * D, 0}, K}, v = k, m = {1, {KV, N, 1, 1}, {2, (size_t) 2 * KV, 0, 0}, M};
        v.data = V;
        ggml_tensor d = {0, {D, H * G, N, 1}, {4, (size_t) 4 * D, (size_t) 4 * D * H * G, 0}, O, {&q, &k, &v, &m}, {1 / sqrtf(D), 0, 0, 0}};
        ggml_compute_params par = {0, 1, nullptr};
        if (!fa_rows_fits(&d)) { printf("heads of %d, groups of %d: does not fit\n", D, G); continue; }
        double best = 1e9; for (int r = 0; r < 25; r++) { double t = now(); fa_rows(&par, &d); t = now() - t; if (t < best) best = t; }
        double worst = 0, cells = 0;
        for (int n = 0; n < N; n++) { for (int i = 0; i < KV; i++) cells += M[(long) n * KV + i] == 0;
            for (int h = 0; h < H * G; h++) {
            static double s[20000], o[128]; double top = -1e300, sum = 0; memset(o, 0, sizeof(o));
            for (int i = 0; i < KV; i++) if (M[(long) n * KV + i] == 0) { double t = 0; for (int x = 0; x < D; x++) t += (double) Q[((long) n * H * G + h) * D + x] * _cvtsh_ss(K[((long) i * H + h / G) * D + x]); s[i] = t / sqrt(D); if (s[i] > top) top = s[i]; }
            for (int i = 0; i < KV; i++) if (M[(long) n * KV + i] == 0) { double e = exp(s[i] - top); sum += e; for (int x = 0; x < D; x++) o[x] += e * _cvtsh_ss(V[((long) i * H + h / G) * D + x]); }
            for (int x = 0; x < D; x++) { double e = fabs(O[((long) n * H * G + h) * D + x] - (sum ? o[x] / sum : 0)); if (!(e < worst)) worst = e; } } }
        printf("heads of %d, groups of %d: %.1f ns a cell and group, worst error %.1e\n", D, G, best / cells / H * 1e9, worst);
    }
}
