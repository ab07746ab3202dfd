#include "tests/simulation/group/group_model.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "cluster/replica_sum/vector_sum.h"

namespace parasol::simulation {
namespace {

// The last one is not trained: what is pushed is subtracted.
constexpr int64_t kSizes[] = {5, 2};
// Gradients that are multiples of this one's inverse, and some units large,
// have exact sums.
constexpr float kExact = 4096;

}  // namespace

std::vector<VariableSpec> GroupVariables() {
  std::vector<VariableSpec> variables;
  for (const int64_t size : kSizes) {
    VariableSpec variable{.name = absl::StrCat("v", variables.size()),
                          .shape = {size}};
    variable.initializer.mutable_constant()->set_value(1);
    variables.push_back(variable);
  }
  variables.back().trained = false;
  return variables;
}

std::vector<float> GroupGradient(const Shape& shape, int64_t step, int replica,
                                 size_t variable,
                                 absl::Span<const float> values) {
  std::vector<float> gradient;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto drawn =
        static_cast<float>((step * 31 + replica * 17 +
                            static_cast<int64_t>(variable * 7 + i * 3)) %
                           11);
    gradient.push_back(0.1F * (drawn - 5) + 0.03F * values[i]);
  }
  if (shape.all_reduce == Shape::AllReduce::kTree) {
    for (float& each : gradient) each = std::round(each * kExact) / kExact;
  }
  return gradient;
}

GroupContents ContentsOf(ParameterStore& parameters) {
  GroupContents contents;
  StoredVariables& variables = parameters.variables();
  contents.updates.assign(variables.updates().begin(),
                          variables.updates().end());
  for (size_t i = 0; i < parameters.num_variables(); ++i) {
    for (int array = 0; array < variables.num_arrays(i); ++array) {
      const absl::Span<const float> read = *variables.Read(i, array);
      contents.elements.insert(contents.elements.end(), read.begin(),
                               read.end());
    }
  }
  return contents;
}

void SetContents(const GroupContents& contents, ParameterStore& parameters) {
  StoredVariables& variables = parameters.variables();
  absl::Span<const float> elements = contents.elements;
  for (size_t i = 0; i < parameters.num_variables(); ++i) {
    variables.SetUpdates(i, contents.updates[i]);
    for (int array = 0; array < variables.num_arrays(i); ++array) {
      const size_t size = variables.specs()[i].elements();
      CHECK(variables.Write(i, array, elements.first(size)).ok());
      elements.remove_prefix(size);
    }
  }
}

GroupReference::GroupReference(job::Job job, const Shape& shape)
    : job_(std::move(job)), shape_(shape), first_step_(0) {
  auto parameters = ParameterStore::Create(GroupVariables(), job_);
  CHECK(parameters.ok()) << parameters.status().message();
  parameters_ = *std::move(parameters);
  after_.push_back(ContentsOf(*parameters_));
}

GroupReference::GroupReference(job::Job job, const Shape& shape, int64_t step,
                               const GroupContents& contents)
    : job_(std::move(job)), shape_(shape), first_step_(step) {
  auto parameters = ParameterStore::Create(GroupVariables(), job_);
  CHECK(parameters.ok()) << parameters.status().message();
  parameters_ = *std::move(parameters);
  SetContents(contents, *parameters_);
  after_.push_back(contents);
}

const GroupContents& GroupReference::After(int64_t step) {
  CHECK(step >= first_step_);
  const auto index = static_cast<size_t>(step - first_step_);
  while (after_.size() <= index) MakeStep();
  return after_[index];
}

void GroupReference::MakeStep() {
  const int64_t step = first_step_ + static_cast<int64_t>(after_.size()) - 1;
  std::vector<std::vector<float>> means;
  for (size_t i = 0; i < parameters_->num_variables(); ++i) {
    const absl::Span<const float> read = *parameters_->variables().Read(i, 0);
    const std::vector<float> values(read.begin(), read.end());
    std::vector<float> sum = GroupGradient(shape_, step, 0, i, values);
    for (int replica = 1; replica < shape_.replicas; ++replica) {
      const std::vector<float> next =
          GroupGradient(shape_, step, replica, i, values);
      AddTo(absl::MakeSpan(sum),
            reinterpret_cast<const std::byte*>(next.data()));
    }
    DivideBy(absl::MakeSpan(sum), static_cast<float>(shape_.replicas));
    means.push_back(std::move(sum));
  }
  for (size_t i = 0; i < means.size(); ++i) {
    parameters_->ApplyBlock(i, /*first=*/0, means[i]);
    parameters_->CountUpdate(i);
  }
  after_.push_back(ContentsOf(*parameters_));
}

}  // namespace parasol::simulation
