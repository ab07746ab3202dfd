#include "tests/benchmark/memory_contender.h"

#include <cstring>
#include <memory>
#include <vector>

#include "base/log.h"
#include "tests/benchmark/plain_tables.h"

namespace parasol {
namespace {

class MemorySession : public Session {
 public:
  explicit MemorySession(const Contents& contents)
      : variables_(contents), received_(contents.elements) {}

  void Start(const VariableExchange& exchange) override {
    if (!exchange.gradient.empty()) {
      std::memcpy(received_.data(), exchange.gradient.data(),
                  exchange.gradient.size() * sizeof(float));
      variables_.Apply(exchange.variable, 0, received_.size(),
                       received_.data());
    }
    if (!exchange.values.empty()) {
      std::memcpy(exchange.values.data(),
                  variables_.values(exchange.variable).data(),
                  exchange.values.size() * sizeof(float));
    }
  }
  void StartRows(const RowExchange&) override {
    LOG(FATAL) << "no sparse table";
  }
  void Finish() override {}

 private:
  PlainVariables variables_;
  std::vector<float> received_;
};

}  // namespace

Contender MakeMemoryContender(const Contents& contents) {
  Contender contender = {.name = "memcpy"};
  contender.sessions.push_back(std::make_unique<MemorySession>(contents));
  return contender;
}

}  // namespace parasol
