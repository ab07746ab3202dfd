#ifndef PARASOL_WORKER_GROUP_TESTING_GROUP_FIXTURE_H_
#define PARASOL_WORKER_GROUP_TESTING_GROUP_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/layer/variable_spec.h"
#include "proto/job.pb.h"
#include "worker/group/state/group_state.h"

// A small set of variables with a table, and a state of them.
namespace parasol::group_testing {

inline constexpr size_t kWidth = 2;
// Elements of the variables v0, v1, …
inline constexpr int64_t kSizes[] = {3, 1, 5};

inline job::Job MakeJob() {
  job::Job job;
  job.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.5);
  job.mutable_optimizer()->mutable_sgd()->set_momentum(0.5);
  job::SparseTable& table = *job.mutable_model()->add_sparse_table();
  table.set_name("users");
  table.set_width(kWidth);
  table.mutable_initializer()->mutable_zeros();
  return job;
}

inline std::vector<VariableSpec> MakeVariables() {
  std::vector<VariableSpec> variables;
  for (const int64_t size : kSizes) {
    VariableSpec variable{.name = absl::StrCat("v", variables.size()),
                          .shape = {size}};
    variable.initializer.mutable_constant()->set_value(1);
    variables.push_back(variable);
  }
  return variables;
}

inline std::unique_ptr<GroupState> MakeState(Clock& clock = Clock::Real()) {
  return std::make_unique<GroupState>(MakeVariables(), MakeJob(), clock);
}

// Gives the state initial values, as of `step`.
inline void Initialize(GroupState& state, int64_t step = 0) {
  auto parameters = state.MakeParameters();
  ASSERT_OK(parameters);
  state.Replace(*std::move(parameters), {.step = step});
}

// Makes a step whose gradient of every element is `gradient`.
inline absl::Status MakeStep(GroupState& state, int64_t epoch, float gradient) {
  return state.MakeStep(epoch, [&](ParameterStore& parameters) {
    for (size_t i = 0; i < std::size(kSizes); ++i) {
      parameters.ApplyBlock(i, 0, std::vector<float>(kSizes[i], gradient));
      parameters.CountUpdate(i);
    }
    const std::vector<uint64_t> ids = {uint64_t(gradient), 7};
    return parameters.ApplyRows(0, ids,
                                std::vector<float>(2 * kWidth, gradient));
  });
}

// Everything that a state has, but of rows only the ids 0 to 9.
struct Contents {
  std::vector<std::vector<float>> arrays;  // values and slots
  std::vector<int64_t> updates;
  std::vector<float> rows;

  friend bool operator==(const Contents&, const Contents&) = default;
};

inline Contents ContentsOf(GroupState& state) {
  Contents contents;
  EXPECT_OK(state.Read([&](ParameterStore& parameters) {
    StoredVariables& variables = parameters.variables();
    contents.updates.assign(variables.updates().begin(),
                            variables.updates().end());
    contents.updates.push_back(parameters.table(0).updates());
    for (size_t i = 0; i < parameters.num_variables(); ++i) {
      for (int array = 0; array < variables.num_arrays(i); ++array) {
        const absl::Span<const float> read = *variables.Read(i, array);
        contents.arrays.emplace_back(read.begin(), read.end());
      }
    }
    return absl::OkStatus();
  }));
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < 10; ++id) ids.push_back(id);
  contents.rows.resize(ids.size() * kWidth);
  TrainingParameters::PullRequest pull;
  pull.rows = {{0, ids, absl::MakeSpan(contents.rows)}};
  EXPECT_OK(state.Pull(std::move(pull)));
  return contents;
}

}  // namespace parasol::group_testing

#endif  // PARASOL_WORKER_GROUP_TESTING_GROUP_FIXTURE_H_
