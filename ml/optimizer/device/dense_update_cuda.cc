#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include "base/status_macros.h"
#include "ml/optimizer/device/dense_update.h"
#include "ml/optimizer/device/update_kernels.h"
#include "ml/optimizer/rule/clip.h"

namespace parasol::cuda {
namespace {

// Returns an array in the device's memory that holds `values`.
template <typename T>
absl::StatusOr<Array<T>> Put(Device& device, const std::vector<T>& values) {
  ASSIGN_OR_RETURN(const Array<T> host, device.NewHostArray<T>(values.size()));
  ASSIGN_OR_RETURN(Array<T> array, device.NewArray<T>(values.size()));
  std::copy(values.begin(), values.end(), host.data());
  RETURN_IF_ERROR(device.Copy(Device::Stream::kCompute,
                              absl::Span<const T>(host.span()), array.data()));
  RETURN_IF_ERROR(device.Synchronize());
  return array;
}

class CudaDenseUpdate final : public DenseUpdate {
 public:
  CudaDenseUpdate(Device& device, const Optimizer& optimizer,
                  const job::Optimizer& limits,
                  const std::vector<Variable>& variables)
      : device_(device), optimizer_(optimizer), limits_(limits) {
    for (const Variable& variable : variables) Add(variable);
  }

  // Makes the tables and sums in the device's memory.
  absl::Status Start() {
    ASSIGN_OR_RETURN(variables_on_device_, Put(device_, variables_));
    if (optimizer_.AverageAt(0).has_value()) {
      std::vector<UpdateArrays> averages = variables_;
      const size_t last = optimizer_.slot_names().size() - 1;
      for (UpdateArrays& arrays : averages) {
        arrays.slots[0] = arrays.slots[last];
      }
      ASSIGN_OR_RETURN(averages_on_device_, Put(device_, averages));
    }
    ASSIGN_OR_RETURN(chunks_on_device_, Put(device_, chunks_));
    ASSIGN_OR_RETURN(chunk_sums_, device_.NewArray<double>(chunks_.size()));
    ASSIGN_OR_RETURN(sums_, device_.NewArray<double>(variables_.size()));
    ASSIGN_OR_RETURN(clipped_sums_,
                     device_.NewArray<double>(variables_.size()));
    ASSIGN_OR_RETURN(total_, device_.NewArray<double>(1));
    if (!optimizer_.needs_whole_variable()) return absl::OkStatus();
    ASSIGN_OR_RETURN(lamb_chunk_sums_,
                     device_.NewArray<double>(2 * chunks_.size()));
    ASSIGN_OR_RETURN(lamb_sums_,
                     device_.NewArray<double>(2 * variables_.size()));
    return absl::OkStatus();
  }

  absl::Status Apply(absl::Span<const int64_t> iterations) override {
    ASSIGN_OR_RETURN(const GradientClip clip, Clip());
    const std::vector<Range> ranges = RangesOf(iterations);
    RETURN_IF_ERROR(optimizer_.needs_whole_variable() ? ApplyLamb(ranges, clip)
                                                      : ApplyAll(ranges, clip));
    for (const Range& range : ranges) {
      const auto average = optimizer_.AverageAt(range.iterations);
      if (!average.has_value()) continue;
      UpdateTables averages = tables();
      averages.variables = averages_on_device_.data();
      RETURN_IF_ERROR(LaunchUpdate(device_, *average, averages,
                                   range.first_chunk, range.num_chunks,
                                   GradientClip()));
    }
    return absl::OkStatus();
  }

 private:
  // The chunks of variables that lie side by side and have had as many updates.
  struct Range {
    int64_t iterations;
    int64_t first_chunk;
    int64_t num_chunks;
  };

  // Usually all variables are one range, and need one launch.
  std::vector<Range> RangesOf(absl::Span<const int64_t> iterations) const {
    std::vector<Range> ranges;
    for (size_t first = 0, end = 0; first < variables_.size(); first = end) {
      end = first + 1;
      while (end < variables_.size() && iterations[end] == iterations[first]) {
        ++end;
      }
      const int64_t first_chunk = variables_[first].first_chunk;
      const UpdateArrays& last = variables_[end - 1];
      ranges.push_back(
          {.iterations = iterations[first],
           .first_chunk = first_chunk,
           .num_chunks = last.first_chunk + last.num_chunks - first_chunk});
    }
    return ranges;
  }

  absl::Status ApplyAll(const std::vector<Range>& ranges,
                        const GradientClip& clip) {
    for (const Range& range : ranges) {
      RETURN_IF_ERROR(LaunchUpdate(device_, optimizer_.RuleAt(range.iterations),
                                   tables(), range.first_chunk,
                                   range.num_chunks, clip));
    }
    return absl::OkStatus();
  }

  absl::Status ApplyLamb(const std::vector<Range>& ranges,
                         const GradientClip& clip) {
    const auto rule_of = [this](const Range& range) {
      return std::get<LambRule>(optimizer_.RuleAt(range.iterations));
    };
    const LambSums sums = {
        .values_of_chunks = lamb_chunk_sums_.data(),
        .directions_of_chunks = lamb_chunk_sums_.data() + chunks_.size(),
        .values = lamb_sums_.data(),
        .directions = lamb_sums_.data() + variables_.size()};
    for (const Range& range : ranges) {
      RETURN_IF_ERROR(LaunchLambSlots(device_, rule_of(range), tables(),
                                      range.first_chunk, range.num_chunks, clip,
                                      sums));
    }
    RETURN_IF_ERROR(LaunchLambSums(device_, tables(), sums));
    for (const Range& range : ranges) {
      RETURN_IF_ERROR(LaunchLambStep(device_, rule_of(range), tables(),
                                     range.first_chunk, range.num_chunks,
                                     sums));
    }
    return absl::OkStatus();
  }

  void Add(const Variable& variable) {
    UpdateArrays arrays = {};
    arrays.gradient = variable.gradient;
    arrays.value = variable.value;
    std::copy(variable.slots.begin(), variable.slots.end(), arrays.slots);
    arrays.count = variable.count;
    arrays.first_chunk = static_cast<int64_t>(chunks_.size());
    const auto index = static_cast<int64_t>(variables_.size());
    for (int64_t begin = 0; begin < variable.count; begin += kSumChunk) {
      chunks_.push_back({.variable = index, .begin = begin});
    }
    arrays.num_chunks =
        static_cast<int64_t>(chunks_.size()) - arrays.first_chunk;
    variables_.push_back(arrays);
  }

  UpdateTables tables() const {
    return {.variables = variables_on_device_.data(),
            .num_variables = static_cast<int64_t>(variables_.size()),
            .chunks = chunks_on_device_.data(),
            .num_chunks = static_cast<int64_t>(chunks_.size())};
  }

  // Enqueues the sums that the limits need. Each limit applies to what those
  // before it leave.
  absl::StatusOr<GradientClip> Clip() {
    GradientClip clip;
    if (limits_.has_clipvalue()) {
      clip.value_limit = static_cast<float>(limits_.clipvalue());
    }
    if (limits_.has_clipnorm()) {
      RETURN_IF_ERROR(LaunchSums(device_, tables(), clip, chunk_sums_.data(),
                                 sums_.data()));
      clip.norm_limit = limits_.clipnorm();
      clip.sums = sums_.data();
    }
    if (limits_.has_global_clipnorm()) {
      RETURN_IF_ERROR(LaunchSums(device_, tables(), clip, chunk_sums_.data(),
                                 clipped_sums_.data()));
      RETURN_IF_ERROR(LaunchTotal(device_, clipped_sums_.data(),
                                  clipped_sums_.size(), total_.data()));
      clip.global_limit = limits_.global_clipnorm();
      clip.global_sum = total_.data();
    }
    return clip;
  }

  Device& device_;
  const Optimizer& optimizer_;
  const job::Optimizer limits_;
  std::vector<UpdateArrays> variables_;
  std::vector<UpdateChunk> chunks_;
  Array<UpdateArrays> variables_on_device_;
  // Variables with their averages as their only slots.
  Array<UpdateArrays> averages_on_device_;
  Array<UpdateChunk> chunks_on_device_;
  // Sums of squares: of each chunk, of each variable's gradient before it is
  // clipped by its norm, and after, and of all gradients.
  Array<double> chunk_sums_, sums_, clipped_sums_, total_;
  // Sums of LambSums: of values, then of directions.
  Array<double> lamb_chunk_sums_, lamb_sums_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DenseUpdate>> NewDenseUpdate(
    Device& device, const Optimizer& optimizer, const job::Optimizer& limits,
    std::vector<DenseUpdate::Variable> variables) {
  auto update =
      std::make_unique<CudaDenseUpdate>(device, optimizer, limits, variables);
  RETURN_IF_ERROR(update->Start());
  return update;
}

}  // namespace parasol::cuda
