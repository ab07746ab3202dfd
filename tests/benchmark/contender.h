#ifndef PARASOL_TESTS_BENCHMARK_CONTENDER_H_
#define PARASOL_TESTS_BENCHMARK_CONTENDER_H_

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {

// Bytes of the variables that every contender holds, by number.
inline constexpr std::array<size_t, 3> kVariableBytes = {64 << 10, 1 << 20,
                                                         16 << 20};

// A way to bring gradients to variables and values back. Not thread-safe.
class Contender {
 public:
  virtual ~Contender() = default;

  virtual std::string name() const = 0;

  // Applies a gradient with SGD; done when this returns.
  virtual void Push(size_t variable, absl::Span<const float> gradient) = 0;
  virtual void Pull(size_t variable, absl::Span<float> values) = 0;
  // Both, overlapped where the contender can; the values are those after.
  virtual void PushPull(size_t variable, absl::Span<const float> gradient,
                        absl::Span<float> values) = 0;

  // Of the process that holds the variables; 0: this one.
  virtual size_t server_rss_bytes() const = 0;
};

// The variables of a contender that is not Parasol, updated by Parasol's SGD.
// Calls for different elements may run at the same time.
class PlainVariables {
 public:
  PlainVariables();

  absl::Span<float> values(size_t variable) {
    return absl::MakeSpan(values_[variable]);
  }
  // `gradient` may be at any alignment.
  void Apply(size_t variable, size_t first, size_t count, const void* gradient);

 private:
  std::vector<std::vector<float>> values_;
  std::unique_ptr<const Optimizer> sgd_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_CONTENDER_H_
