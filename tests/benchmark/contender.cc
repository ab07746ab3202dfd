#include "tests/benchmark/contender.h"

#include "base/log.h"

namespace parasol {

PlainVariables::PlainVariables() {
  for (size_t bytes : kVariableBytes) {
    values_.emplace_back(bytes / sizeof(float));
  }
  job::Optimizer spec;
  spec.mutable_sgd()->set_learning_rate(0.01);
  auto sgd = MakeOptimizer(spec);
  CHECK(sgd.ok()) << sgd.status();
  sgd_ = *std::move(sgd);
}

void PlainVariables::Apply(size_t variable, size_t first, size_t count,
                           const void* gradient) {
  float* value = values_[variable].data() + first;
  sgd_->Apply(0, {.count = count,
                  .gradient = static_cast<const std::byte*>(gradient),
                  .value = value,
                  .new_value = value,
                  .slots = {}});
}

}  // namespace parasol
