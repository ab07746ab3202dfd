#include "tests/benchmark/memory_contender.h"

#include <cstring>
#include <vector>

namespace parasol {
namespace {

class MemoryContender : public Contender {
 public:
  MemoryContender() : received_(kVariableBytes.back() / sizeof(float)) {}

  std::string name() const override { return "memcpy"; }

  void Push(size_t variable, absl::Span<const float> gradient) override {
    std::memcpy(received_.data(), gradient.data(),
                gradient.size() * sizeof(float));
    variables_.Apply(variable, 0, gradient.size(), received_.data());
  }

  void Pull(size_t variable, absl::Span<float> values) override {
    std::memcpy(values.data(), variables_.values(variable).data(),
                values.size() * sizeof(float));
  }

  void PushPull(size_t variable, absl::Span<const float> gradient,
                absl::Span<float> values) override {
    Push(variable, gradient);
    Pull(variable, values);
  }

  size_t server_rss_bytes() const override { return 0; }

 private:
  PlainVariables variables_;
  std::vector<float> received_;
};

}  // namespace

std::unique_ptr<Contender> MakeMemoryContender() {
  return std::make_unique<MemoryContender>();
}

}  // namespace parasol
