// The batch normalizations of ResNet-56 (CIFAR, batch 32), with relu, against
// oneDNN's for the same layout.
//   bazel run //ml/kernel:batch_normalization_benchmark
#include <omp.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/log.h"
#include "benchmark/benchmark.h"
#include "ml/device/device.h"
#include "ml/kernel/normalization/batch_normalization.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace parasol {
namespace {

constexpr int64_t kExamples = 32;

struct Layer {
  explicit Layer(const benchmark::State& state)
      : pixels(state.range(0)),
        channels(state.range(1)),
        device(*Device::Open("cpu")),
        kernel(*BatchNormalization::Create(
            *device, {kExamples * pixels * pixels, channels},
            {.epilogue = Epilogue::kRelu})),
        x(kExamples * pixels * pixels * channels, .5f),
        y(x.size(), .5f),
        dx(x.size()),
        per_channel(channels, .5f) {}

  const int64_t pixels, channels;
  const std::unique_ptr<Device> device;
  const std::unique_ptr<BatchNormalization> kernel;
  std::vector<float> x, y, dx, per_channel;
};

void BM_Forward(benchmark::State& state) {
  Layer layer(state);
  for (auto _ : state) {
    CHECK(layer.kernel
              ->ForwardTraining(layer.x.data(), layer.per_channel.data(),
                                layer.per_channel.data(), layer.y.data())
              .ok());
  }
}

void BM_Gradients(benchmark::State& state) {
  Layer layer(state);
  std::vector<float> dgamma(layer.channels), dbeta(layer.channels);
  CHECK(layer.kernel
            ->ForwardTraining(layer.x.data(), layer.per_channel.data(),
                              layer.per_channel.data(), layer.y.data())
            .ok());
  for (auto _ : state) {
    CHECK(layer.kernel
              ->Backward(layer.x.data(), layer.y.data(),
                         {dgamma.data(), dbeta.data(), layer.dx.data()}, {})
              .ok());
  }
}

// oneDNN's, both passes.
struct Dnnl {
  using Flags = dnnl::normalization_flags;
  using Forward = dnnl::batch_normalization_forward;
  using Backward = dnnl::batch_normalization_backward;

  explicit Dnnl(const benchmark::State& state)
      : layout({kExamples, state.range(1), state.range(0), state.range(0)},
               dnnl::memory::data_type::f32, dnnl::memory::format_tag::nhwc),
        forward({dnnl::prop_kind::forward_training, layout, 1e-3f, flags},
                engine),
        backward({dnnl::prop_kind::backward, layout, layout, 1e-3f, flags},
                 engine, forward) {
    std::memset(x.get_data_handle(), 0, layout.get_size());
  }

  const Flags flags = Flags::use_scale_shift | Flags::fuse_norm_relu;

  const dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  const dnnl::memory::desc layout;
  const Forward::primitive_desc forward;
  const Backward::primitive_desc backward;
  const dnnl::memory x{layout, engine}, y{layout, engine}, dx{layout, engine},
      mean{forward.mean_desc(), engine},
      variance{forward.variance_desc(), engine},
      scale_shift{forward.weights_desc(), engine},
      gradients{forward.weights_desc(), engine},
      workspace{forward.workspace_desc(), engine};
};

void BM_DnnlForward(benchmark::State& state) {
  omp_set_num_threads(1);
  Dnnl dnnl(state);
  const Dnnl::Forward forward(dnnl.forward);
  for (auto _ : state) {
    forward.execute(dnnl.stream, {{DNNL_ARG_SRC, dnnl.x},
                                  {DNNL_ARG_DST, dnnl.y},
                                  {DNNL_ARG_MEAN, dnnl.mean},
                                  {DNNL_ARG_VARIANCE, dnnl.variance},
                                  {DNNL_ARG_SCALE_SHIFT, dnnl.scale_shift},
                                  {DNNL_ARG_WORKSPACE, dnnl.workspace}});
  }
}

void BM_DnnlGradients(benchmark::State& state) {
  omp_set_num_threads(1);
  Dnnl dnnl(state);
  const Dnnl::Backward backward(dnnl.backward);
  for (auto _ : state) {
    backward.execute(dnnl.stream, {{DNNL_ARG_SRC, dnnl.x},
                                   {DNNL_ARG_DIFF_DST, dnnl.y},
                                   {DNNL_ARG_DIFF_SRC, dnnl.dx},
                                   {DNNL_ARG_MEAN, dnnl.mean},
                                   {DNNL_ARG_VARIANCE, dnnl.variance},
                                   {DNNL_ARG_SCALE_SHIFT, dnnl.scale_shift},
                                   {DNNL_ARG_DIFF_SCALE_SHIFT, dnnl.gradients},
                                   {DNNL_ARG_WORKSPACE, dnnl.workspace}});
  }
}

#define PARASOL_LAYERS             \
  ArgNames({"pixels", "channels"}) \
      ->Args({32, 16})             \
      ->Args({16, 32})             \
      ->Args({8, 64})
BENCHMARK(BM_Forward)->PARASOL_LAYERS;
BENCHMARK(BM_DnnlForward)->PARASOL_LAYERS;
BENCHMARK(BM_Gradients)->PARASOL_LAYERS;
BENCHMARK(BM_DnnlGradients)->PARASOL_LAYERS;

}  // namespace
}  // namespace parasol

BENCHMARK_MAIN();
