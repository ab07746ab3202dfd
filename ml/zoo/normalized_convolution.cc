#include "ml/zoo/normalized_convolution.h"

#include "ml/builder/initializers.h"
#include "ml/builder/layers.h"

namespace parasol::zoo {

Value NormalizedConvolution(const Value& x,
                            const NormalizedConvolutionOptions& options) {
  layers::Conv2DOptions conv = {.filters = options.filters,
                                .kernel_size = {options.window},
                                .padding = job::SAME,
                                .use_bias = false,
                                .kernel_initializer = HeNormal(),
                                .kernel_l2 = options.l2,
                                .name = options.name + "/conv"};
  if (options.stride != 1) conv.stride = {options.stride};
  return layers::BatchNormalization(layers::Conv2D(x, conv),
                                    {.momentum = options.momentum,
                                     .gamma_initializer = options.gamma,
                                     .name = options.name + "/norm"});
}

}  // namespace parasol::zoo
