#ifndef PARASOL_ML_LAYER_TESTING_LAYER_FIXTURE_H_
#define PARASOL_ML_LAYER_TESTING_LAYER_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/layer/layer.h"

namespace parasol {

// Inputs and variables of a layer, on the host, in double. Tensors are
// row-major, [examples, shape...].
struct LayerValues {
  int64_t examples = 0;
  std::vector<std::vector<double>> inputs = {};  // empty: ids
  std::vector<std::vector<double>> variables = {};
  // Fields of RowsView; each row has `width` values.
  int64_t width = 0;
  std::vector<double> rows = {};
  std::vector<int32_t> offsets = {};
  std::vector<int32_t> positions = {};
  std::vector<double> weights = {};  // empty: all 1
  bool training = true;
  uint64_t seed = 1;
};

// A function that returns the layer's output for these values: the
// specification, in plain loops.
using LayerReference = std::function<std::vector<double>(const LayerValues&)>;

// Results that a layer computes from LayerValues and the gradient by its
// output.
struct LayerResults {
  std::vector<float> y = {};
  std::vector<std::vector<float>> dx = {};         // empty if it was not wanted
  std::vector<std::vector<float>> gradients = {};  // one for each variable
  std::vector<float> row_gradients = {};
};

// Returns values in [-1, 1) that float32 represents exactly, the same for the
// same seed. An id input of any number of ids has none to four for each
// example, and the first of several examples none; weights are in [0.25, 1.25).
LayerValues RandomLayerValues(const Layer& layer,
                              absl::Span<const LayerInput> inputs,
                              int64_t examples, uint32_t seed = 1);

// Compares layers with references on every device. A layer's test is
//
//   class ReluTest : public LayerTest {};
//   TEST_P(ReluTest, IsTheReference) {
//     const std::vector<LayerInput> inputs = {{.shape = {3, 5}}};
//     auto layer = MakeActivation(job::RELU, inputs);
//     ASSERT_OK(layer.status());
//     CheckLayer(**layer, RandomLayerValues(**layer, inputs, /*examples=*/2),
//                [](const LayerValues& v) { … });
//   }
//   INSTANTIATE_TEST_SUITE_P(Devices, ReluTest, DevicesUnderTest(),
//                            DeviceName);
class LayerTest : public DeviceTest {
 protected:
  // Largest error of an element, as a multiple of (1 + its size).
  struct Tolerance {
    double output = 1e-5;
    double gradient = 1e-5;
  };

  // Checks four things: the layer's output is the reference's, in training and
  // in evaluation; all gradients of Σ r·y, r random, equal the reference's
  // central differences; a second pass through the same memory gives the same;
  // and an input whose gradient is not wanted changes nothing. Gradients of
  // variables that are not trained are not compared.
  void CheckLayer(const Layer& layer, const LayerValues& values,
                  const LayerReference& reference, Tolerance tolerance);
  void CheckLayer(const Layer& layer, const LayerValues& values,
                  const LayerReference& reference) {
    CheckLayer(layer, values, reference, Tolerance());
  }

  // Runs one forward and backward pass; no backward pass if `dy` is empty. Each
  // dx is computed if `wanted` is empty or true for it.
  LayerResults RunLayer(const Layer& layer, const LayerValues& values,
                        const std::vector<double>& dy,
                        const std::vector<bool>& wanted = {});

 private:
  class Memory;

  LayerResults RunPass(LayerPass& pass, const Layer& layer,
                       const LayerValues& values, const std::vector<double>& dy,
                       const std::vector<bool>& wanted);
};

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_TESTING_LAYER_FIXTURE_H_
