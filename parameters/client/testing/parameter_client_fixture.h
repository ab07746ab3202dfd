#ifndef PARASOL_PARAMETERS_CLIENT_TESTING_PARAMETER_CLIENT_FIXTURE_H_
#define PARASOL_PARAMETERS_CLIENT_TESTING_PARAMETER_CLIENT_FIXTURE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "parameters/client/parameter_client.h"
#include "parameters/client/testing/fake_parameter_service.h"
#include "proto/chief.pb.h"

namespace parasol {

inline std::vector<float> Ramp(size_t size) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

inline std::vector<float> Negative(std::vector<float> values) {
  for (float& value : values) value = -value;
  return values;
}

// A fixture with fake shards, the variables that a test puts on them, and a
// client of them.
class ParameterClientTest : public testing::Test {
 protected:
  static constexpr uint64_t kIncarnation = 77;

  ParameterClientTest() {
    options_.worker_incarnation = kIncarnation;
    placement_.set_run_id("run-1");
  }

  void AddShards(int count) {
    for (int i = 0; i < count; ++i) {
      placement_.add_shard()->set_address(fakes_.emplace_back().address());
    }
  }

  // Adds elements [first, first + elements) of a variable of `size` to a shard.
  void AddPart(int shard, const std::string& variable, int64_t size,
               int64_t first, int64_t elements) {
    wire::Shard& to = *placement_.mutable_shard(shard);
    wire::PartSpec& part = *to.add_part();
    part.set_id(to.part_size() - 1);
    part.set_variable(variable);
    part.add_variable_shape(size);
    part.set_first_element(first);
    part.set_elements(elements);
    fakes_[shard].AddPart(part.id(), elements);
  }

  void AddVariable(int shard, const std::string& name, int64_t size) {
    AddPart(shard, name, size, 0, size);
    names_.push_back(name);
  }

  // Adds a variable that is not trained, like the moving statistics of batch
  // normalization.
  void AddUntrained(int shard, const std::string& name, int64_t size) {
    AddVariable(shard, name, size);
    wire::Shard& to = *placement_.mutable_shard(shard);
    to.mutable_part(to.part_size() - 1)->mutable_optimizer()->mutable_sgd();
  }

  // Removes all shards.
  void Clear() {
    placement_.clear_shard();
    fakes_.clear();
    names_.clear();
    tables_.clear();
  }

  // Adds a sparse table to all shards.
  void AddTable(const std::string& name, size_t width) {
    for (int i = 0; i < placement_.shard_size(); ++i) {
      wire::Shard& shard = *placement_.mutable_shard(i);
      wire::TableSpec& table = *shard.add_table();
      table.set_id(shard.table_size() - 1);
      table.set_name(name);
      table.set_width(width);
      fakes_[i].AddTable(table.id(), width);
    }
    tables_.push_back(name);
  }

  std::unique_ptr<ParameterClient> Connect(Clock& clock = Clock::Real()) {
    auto client = ParameterClient::Create(placement_, names_, tables_, options_,
                                          clock, metrics_);
    EXPECT_OK(client);
    return *std::move(client);
  }

  // Returns the value on /metrics of the metric with this name (and labels).
  std::string Metric(const std::string& name) {
    const std::string text = metrics_.Text();
    const size_t at = text.find("\n" + name + " ");
    if (at == std::string::npos) return "absent";
    const size_t value = at + name.size() + 2;
    return text.substr(value, text.find('\n', value) - value);
  }

  std::deque<FakeParameterService> fakes_;
  wire::GetPlacementResponse placement_;
  std::vector<std::string> names_;
  std::vector<std::string> tables_;
  ParameterClient::Options options_;
  MetricsRegistry metrics_;
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_TESTING_PARAMETER_CLIENT_FIXTURE_H_
