// The layers of an MNIST classifier (784-512-10, batch 128) and one of a single
// unit against a bare sgemm of the same size on one thread, which is the floor.
//   bazel run //ml/kernel:affine_benchmark
#include <omp.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/log.h"
#include "benchmark/benchmark.h"
#include "ml/device/device.h"
#include "ml/kernel/affine.h"
#include "oneapi/dnnl/dnnl.h"

namespace parasol {
namespace {

struct Layer {
  explicit Layer(const benchmark::State& state)
      : m(state.range(0)),
        k(state.range(1)),
        n(state.range(2)),
        device(*Device::Open("cpu")),
        x(m * k, .5f),
        w(k * n, .5f),
        b(n, .5f),
        y(m * n, .5f),
        dx(m * k),
        dw(k * n),
        db(n) {}

  MatrixView X() const { return {x.data(), m, k}; }
  MatrixView W() const { return {w.data(), k, n}; }
  MutableMatrixView Y() { return {y.data(), m, n}; }

  void Report(benchmark::State& state) const {
    state.counters["FLOP"] = benchmark::Counter(
        2.0 * m * k * n * state.iterations(), benchmark::Counter::kIsRate);
  }

  const int64_t m, k, n;
  const std::unique_ptr<Device> device;
  std::vector<float> x, w, b, y, dx, dw, db;
};

void BM_SgemmFloor(benchmark::State& state) {
  Layer layer(state);
  omp_set_num_threads(1);
  for (auto _ : state) {
    CHECK_EQ(dnnl_sgemm('N', 'N', layer.m, layer.n, layer.k, 1, layer.x.data(),
                        layer.k, layer.w.data(), layer.n, 0, layer.y.data(),
                        layer.n),
             dnnl_success);
  }
  layer.Report(state);
}

void BM_Forward(benchmark::State& state) {
  Layer layer(state);
  for (auto _ : state) {
    CHECK(Affine(*layer.device, layer.X(), layer.W(), layer.b.data(),
                 Epilogue::kRelu, layer.Y())
              .ok());
  }
  layer.Report(state);
}

void BM_VariableGradients(benchmark::State& state) {
  Layer layer(state);
  for (auto _ : state) {
    CHECK(AffineVariableGradients(*layer.device, layer.X(), layer.Y(),
                                  {layer.dw.data(), layer.k, layer.n},
                                  layer.db.data())
              .ok());
  }
  layer.Report(state);
}

void BM_InputGradient(benchmark::State& state) {
  Layer layer(state);
  for (auto _ : state) {
    CHECK(AffineInputGradient(*layer.device, layer.Y(), layer.W(),
                              {layer.dx.data(), layer.m, layer.k})
              .ok());
  }
  layer.Report(state);
}

#define PARASOL_LAYERS        \
  ArgNames({"m", "k", "n"})   \
      ->Args({128, 784, 512}) \
      ->Args({128, 512, 10})  \
      ->Args({512, 416, 1})
BENCHMARK(BM_SgemmFloor)->PARASOL_LAYERS;
BENCHMARK(BM_Forward)->PARASOL_LAYERS;
BENCHMARK(BM_VariableGradients)->PARASOL_LAYERS;
BENCHMARK(BM_InputGradient)->PARASOL_LAYERS;

}  // namespace
}  // namespace parasol

BENCHMARK_MAIN();
