// The convolutions of ResNet-56 (CIFAR, batch 32), of LeNet (MNIST, batch 64)
// and the larger ones of ResNet-50 (ImageNet), each of its three operations.
//   bazel run -c opt //ml/kernel/image:convolution_benchmark
#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/log.h"
#include "benchmark/benchmark.h"
#include "ml/device/device.h"
#include "ml/kernel/image/convolution.h"

namespace parasol {
namespace {

struct Layer {
  explicit Layer(const benchmark::State& state)
      : device(*Device::Open("cpu",
                             {.threads = static_cast<int>(state.range(6))})),
        shape({.examples = state.range(0),
               .height = Axis(state),
               .width = Axis(state),
               .channels = state.range(2),
               .filters = state.range(3)}),
        convolution(*Convolution::Create(*device, shape, {})),
        x(New(shape.x_size())),
        w(New(shape.window_size() * shape.filters)),
        y(New(shape.y_size())),
        dx(New(shape.x_size())),
        dw(New(w.size())) {}

  // As models have them: vectors of the processor lie within cache lines.
  Array<float> New(int64_t size) const {
    Array<float> array = *device->NewArray<float>(size);
    std::fill_n(array.data(), size, .5f);
    return array;
  }

  static WindowAxis Axis(const benchmark::State& state) {
    return FitWindow(state.range(1), state.range(4), state.range(5),
                     WindowPadding::kSame);
  }

  void Report(benchmark::State& state) const {
    state.counters["FLOP"] = benchmark::Counter(
        2.0 * shape.window_size() * shape.y_size() * state.iterations(),
        benchmark::Counter::kIsRate);
  }

  const std::unique_ptr<Device> device;
  const ConvolutionShape shape;
  const std::unique_ptr<Convolution> convolution;
  const Array<float> x, w, y, dx, dw;
};

void BM_Forward(benchmark::State& state) {
  Layer layer(state);
  for (auto _ : state) {
    CHECK(layer.convolution
              ->Forward(layer.x.data(), layer.w.data(), nullptr, layer.y.data())
              .ok());
  }
  layer.Report(state);
}

void BM_KernelGradient(benchmark::State& state) {
  Layer layer(state);
  for (auto _ : state) {
    CHECK(layer.convolution
              ->VariableGradients(layer.x.data(), layer.y.data(),
                                  layer.dw.data(), nullptr)
              .ok());
  }
  layer.Report(state);
}

void BM_InputGradient(benchmark::State& state) {
  Layer layer(state);
  for (auto _ : state) {
    CHECK(layer.convolution
              ->InputGradient(layer.y.data(), layer.w.data(), layer.dx.data())
              .ok());
  }
  layer.Report(state);
}

void Layers(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"batch", "pixels", "channels", "filters", "window",
                       "stride", "threads"});
  for (const int threads : {1, 2}) {
    benchmark->Args({32, 32, 3, 16, 3, 1, threads})
        ->Args({32, 32, 16, 16, 3, 1, threads})
        ->Args({32, 32, 16, 32, 3, 2, threads})
        ->Args({32, 16, 32, 32, 3, 1, threads})
        ->Args({32, 16, 32, 64, 3, 2, threads})
        ->Args({32, 8, 64, 64, 3, 1, threads})
        ->Args({64, 28, 1, 6, 5, 1, threads})
        ->Args({64, 14, 6, 16, 5, 1, threads})
        ->Args({8, 56, 64, 64, 3, 1, threads})
        ->Args({8, 28, 128, 128, 3, 1, threads})
        ->Args({8, 14, 256, 256, 3, 1, threads})
        ->Args({32, 7, 512, 512, 3, 1, threads})
        ->Args({32, 4, 64, 64, 3, 1, threads})
        ->Args({32, 3, 64, 64, 3, 1, threads})
        ->Args({32, 16, 16, 64, 3, 1, threads})
        ->Args({1, 8, 64, 64, 3, 1, threads});
  }
  benchmark->UseRealTime();
}
BENCHMARK(BM_Forward)->Apply(Layers);
BENCHMARK(BM_KernelGradient)->Apply(Layers);
BENCHMARK(BM_InputGradient)->Apply(Layers);

}  // namespace
}  // namespace parasol

BENCHMARK_MAIN();
