#include "libra/attention/reference/tile_math.h"

#include "libra/attention/reference/tile_loops.h"

namespace libra::reference {
namespace {

// Each set: the vector width in bytes and the rows of a product block, so that the block's sums fit
// into the set's registers (16 of them up to AVX2, 32 with AVX-512).
struct Baseline {
  template <typename Acc>
  static void multiply_add(const Product<Acc>& product) {
    multiply_add_loop<Acc, 16, 4>(product);
  }
  template <typename Acc>
  static void online_softmax(const SoftmaxStep<Acc>& step) {
    online_softmax_loop<Acc, 16>(step);
  }
  template <typename Acc>
  static void score_gradient(const ScoreGradient<Acc>& step) {
    score_gradient_loop<Acc, 16>(step);
  }
};

#if defined(__x86_64__)
struct Avx2 {
  template <typename Acc>
  [[gnu::target("avx2,fma")]] static void multiply_add(const Product<Acc>& product) {
    multiply_add_loop<Acc, 32, 4>(product);
  }
  template <typename Acc>
  [[gnu::target("avx2,fma")]] static void online_softmax(const SoftmaxStep<Acc>& step) {
    online_softmax_loop<Acc, 32>(step);
  }
  template <typename Acc>
  [[gnu::target("avx2,fma")]] static void score_gradient(const ScoreGradient<Acc>& step) {
    score_gradient_loop<Acc, 32>(step);
  }
};

struct Avx512 {
  template <typename Acc>
  [[gnu::target("avx512f,fma")]] static void multiply_add(const Product<Acc>& product) {
    multiply_add_loop<Acc, 64, 8>(product);
  }
  template <typename Acc>
  [[gnu::target("avx512f,fma")]] static void online_softmax(const SoftmaxStep<Acc>& step) {
    online_softmax_loop<Acc, 64>(step);
  }
  template <typename Acc>
  [[gnu::target("avx512f,fma")]] static void score_gradient(const ScoreGradient<Acc>& step) {
    score_gradient_loop<Acc, 64>(step);
  }
};
#endif

template <typename Acc, typename Set>
constexpr TileMath<Acc> table(const char* name) {
  return {&Set::template multiply_add<Acc>, &Set::template online_softmax<Acc>,
          &Set::template score_gradient<Acc>, name};
}

template <typename Acc>
TileMath<Acc> fastest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return table<Acc, Avx512>("avx512");
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return table<Acc, Avx2>("avx2");
  }
#endif
  return table<Acc, Baseline>("baseline");
}

}  // namespace

template <typename Acc>
const TileMath<Acc>& tile_math() {
  static const TileMath<Acc> chosen = fastest<Acc>();
  return chosen;
}

template const TileMath<float>& tile_math<float>();
template const TileMath<double>& tile_math<double>();

}  // namespace libra::reference
