#include "ml/tape/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/initializer/philox.h"
#include "ml/initializer/variable_key.h"
#include "ml/tape/check_operands.h"
#include "ml/tape/kinds.h"
#include "ml/tape/operation.h"

namespace parasol {
namespace {

// Random bits of a draw, four numbers for each block. Seed and step are in the
// key, the rest in the counter: no two draws of a step share a counter.
class Bits {
 public:
  explicit Bits(const RandomKey& key) : key_(key) {
    const uint64_t mixed = SplitMix(key.seed ^ SplitMix(key.step));
    philox_key_ = {static_cast<uint32_t>(mixed),
                   static_cast<uint32_t>(mixed >> 32)};
  }

  PhiloxCounter Block(uint64_t number) const {
    return Philox4x32(
        {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32),
         key_.replica, key_.count},
        philox_key_);
  }
  uint32_t Of(uint64_t element) const {
    return Block(element / 4)[element % 4];
  }

 private:
  const RandomKey key_;
  PhiloxKey philox_key_;
};

// Returns a number from [0, 1), of 24 bits.
float Unit(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
// Returns a number from (0, 1), of 32 bits.
double OpenUnit(uint32_t bits) { return (bits + .5) * 0x1p-32; }

absl::StatusOr<TensorType> DrawType(const OperationCall& call) {
  return TensorType{DType::kFloat32, call.attributes.shape};
}

absl::Status UniformCpu(const OperationCall& call, const NewTensor& result) {
  const auto [low, high] = std::pair(call.attributes.low, call.attributes.high);
  const Bits bits(call.attributes.key);
  const absl::Span<float> y = result.floats();
  for (size_t i = 0; i < y.size(); i += 4) {
    const PhiloxCounter block = bits.Block(i / 4);
    for (size_t k = 0; k < 4 && i + k < y.size(); ++k) {
      // Rounding may reach the limit above, which is not part of the range.
      const float drawn = low + (high - low) * Unit(block[k]);
      y[i + k] =
          drawn < high ? drawn : std::max(low, std::nextafter(high, low));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorType> UniformType(const OperationCall& call) {
  if (call.attributes.low <= call.attributes.high) return DrawType(call);
  return absl::InvalidArgumentError(
      absl::StrCat("the limit below, ", call.attributes.low,
                   ", is above the limit above, ", call.attributes.high));
}

// Box and Muller's: two numbers of two.
absl::Status NormalCpu(const OperationCall& call, const NewTensor& result) {
  const Bits bits(call.attributes.key);
  const absl::Span<float> y = result.floats();
  for (size_t i = 0; i < y.size(); i += 4) {
    const PhiloxCounter block = bits.Block(i / 4);
    for (size_t k = 0; k < 4 && i + k < y.size(); ++k) {
      const double radius = std::sqrt(-2 * std::log(OpenUnit(block[k & 2])));
      const double angle = 2 * std::numbers::pi * OpenUnit(block[k | 1]);
      y[i + k] = static_cast<float>(
          radius * (k % 2 == 0 ? std::cos(angle) : std::sin(angle)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorType> CategoricalType(const OperationCall& call) {
  RETURN_IF_ERROR(CheckFloats(call));
  TensorShape shape = call.shape(0);
  if (shape.rank() == 0 || shape[shape.rank() - 1] == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", shape.ToString(), " has no classes"));
  }
  if (call.attributes.count < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(call.attributes.count, " draws"));
  }
  shape[shape.rank() - 1] = call.attributes.count;
  return TensorType{DType::kInt64, shape};
}

// Returns the class at a share of the row's whole probability.
int64_t ClassAt(const float* logits, int64_t classes, double share) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(logits[c] - largest);
  double left = share * sum;
  int64_t last = 0;  // with a probability
  for (int64_t c = 0; c < classes; ++c) {
    const double probability = std::exp(logits[c] - largest);
    if (probability > 0) last = c;
    if (left < probability) return c;
    left -= probability;
  }
  return last;
}

absl::Status CategoricalCpu(const OperationCall& call,
                            const NewTensor& result) {
  const TensorShape& shape = call.shape(0);
  const int64_t classes = shape[shape.rank() - 1];
  const int64_t draws = call.attributes.count;
  const Bits bits(call.attributes.key);
  const absl::Span<int64_t> y = result.ints();
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = ClassAt(call.floats(0) + static_cast<int64_t>(i) / draws * classes,
                   classes, OpenUnit(bits.Of(i)));
  }
  return absl::OkStatus();
}

}  // namespace

const TapeOperationKind kRandomUniform = {
    .name = "random_uniform", .type = UniformType, .cpu = UniformCpu};
const TapeOperationKind kRandomNormal = {
    .name = "random_normal", .type = DrawType, .cpu = NormalCpu};
const TapeOperationKind kRandomCategorical = {.name = "random_categorical",
                                              .type = CategoricalType,
                                              .cpu = CategoricalCpu};

Tensor RandomNormal(const TensorShape& shape, const RandomKey& key) {
  return Apply(kRandomNormal, {}, {.shape = shape, .key = key});
}

Tensor RandomUniform(const TensorShape& shape, const RandomKey& key, float low,
                     float high) {
  return Apply(kRandomUniform, {},
               {.shape = shape, .low = low, .high = high, .key = key});
}

Tensor RandomCategorical(const Tensor& logits, int64_t draws,
                         const RandomKey& key) {
  return Apply(kRandomCategorical, {logits}, {.count = draws, .key = key});
}

}  // namespace parasol
