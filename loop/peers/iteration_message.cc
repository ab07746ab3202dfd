#include "loop/peers/iteration_message.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

// The numbers before the sums of losses, eight bytes each.
struct MessageHead {
  int64_t step = 0;
  int64_t stops = 0;
  int64_t examples = 0;
  double loss_sum = 0;
};

absl::Status Fault(size_t rank, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("worker/", rank, " ", what));
}

}  // namespace

std::string ToBytes(const IterationMessage& message) {
  const Iteration& iteration = message.iteration;
  const MessageHead head = {.step = iteration.step,
                            .stops = message.stops ? 1 : 0,
                            .examples = iteration.examples,
                            .loss_sum = iteration.loss_sum};
  const std::vector<double>& sums = iteration.output_loss_sums;
  std::string bytes(sizeof(head) + sums.size() * sizeof(double), '\0');
  std::memcpy(bytes.data(), &head, sizeof(head));
  if (!sums.empty()) {
    std::memcpy(bytes.data() + sizeof(head), sums.data(),
                sums.size() * sizeof(double));
  }
  return bytes;
}

absl::StatusOr<IterationMessage> AddUp(
    const std::vector<std::string>& by_rank) {
  IterationMessage all;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const std::string& bytes = by_rank[rank];
    MessageHead head;
    if (bytes.size() < sizeof(head) || bytes.size() % sizeof(double) != 0) {
      return Fault(rank, absl::StrCat("ends no iteration: it gathers ",
                                      bytes.size(), " bytes instead"));
    }
    std::memcpy(&head, bytes.data(), sizeof(head));
    if (rank == 0) all.iteration.step = head.step;
    if (head.step != all.iteration.step) {
      return Fault(rank, absl::StrCat("ends iteration ", head.step,
                                      ", worker/0 ", all.iteration.step,
                                      ": all make the same iterations"));
    }
    all.stops |= head.stops != 0;
    all.iteration.examples += head.examples;
    all.iteration.loss_sum += head.loss_sum;
    std::vector<double> sums((bytes.size() - sizeof(head)) / sizeof(double));
    if (!sums.empty()) {
      std::memcpy(sums.data(), bytes.data() + sizeof(head),
                  sums.size() * sizeof(double));
    }
    std::vector<double>& total = all.iteration.output_loss_sums;
    total.resize(std::max(total.size(), sums.size()));
    for (size_t i = 0; i < sums.size(); ++i) total[i] += sums[i];
  }
  return all;
}

}  // namespace parasol
