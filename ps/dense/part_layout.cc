#include "ps/dense/part_layout.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/rpc/protocol_limits.h"

namespace parasol {
namespace {

absl::Status BadPart(const wire::PartSpec& part, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("part ", part.id(), " of \"", part.variable(), "\" ", what));
}

absl::Status BadRange(const wire::TensorRange& range, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("range [", range.first(), ", +", range.count(), ") of part ",
                   range.part(), " ", what));
}

absl::Status CheckRangesDisjoint(
    const google::protobuf::RepeatedPtrField<wire::TensorRange>& ranges,
    const PartLayout::ChunkRanges& resolved) {
  const auto begins_earlier = [](const PartLayout::ChunkRange& a,
                                 const PartLayout::ChunkRange& b) {
    return a.first < b.first;
  };
  std::vector<size_t> order(resolved.size());
  std::iota(order.begin(), order.end(), 0);
  // As clients send them.
  if (!std::is_sorted(resolved.begin(), resolved.end(), begins_earlier)) {
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return begins_earlier(resolved[a], resolved[b]);
    });
  }
  for (size_t i = 1; i < order.size(); ++i) {
    if (resolved[order[i]].first < resolved[order[i - 1]].last) {
      return BadRange(ranges[order[i]],
                      "overlaps an earlier range of the message");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> VariableElements(const wire::PartSpec& part) {
  int64_t elements = 1;
  for (const int64_t dimension : part.variable_shape()) {
    if (dimension <= 0 ||
        __builtin_mul_overflow(elements, dimension, &elements)) {
      return BadPart(part, absl::StrCat("has a dimension ", dimension,
                                        " in its variable's shape"));
    }
  }
  return elements;
}

}  // namespace

absl::StatusOr<PartLayout> PartLayout::Create(
    const google::protobuf::RepeatedPtrField<wire::PartSpec>& parts,
    uint64_t max_elements) {
  PartLayout layout;
  for (const wire::PartSpec& part : parts) {
    RETURN_IF_ERROR(layout.AddPart(part, max_elements));
  }
  RETURN_IF_ERROR(layout.CheckPartsDisjoint());
  return layout;
}

absl::Status PartLayout::AddPart(const wire::PartSpec& part,
                                 uint64_t max_elements) {
  if (part.id() != parts_.size()) {
    return BadPart(part, absl::StrCat("has this id, but is number ",
                                      parts_.size(), " of the shard"));
  }
  if (part.variable().empty()) return BadPart(part, "names no variable");
  ASSIGN_OR_RETURN(const int64_t variable_elements, VariableElements(part));
  if (part.first_element() < 0 || part.elements() <= 0 ||
      part.first_element() > variable_elements ||
      part.elements() > variable_elements - part.first_element()) {
    return BadPart(part,
                   absl::StrCat("has elements [", part.first_element(), ", +",
                                part.elements(), "), but its variable has ",
                                variable_elements, " elements"));
  }
  if (static_cast<uint64_t>(part.elements()) > max_elements - elements_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "with the ", part.elements(), " elements of \"", part.variable(),
        "\" the shard has more than ", max_elements));
  }
  elements_ += part.elements();
  first_chunk_.push_back(chunks_.size());
  for (int64_t first = 0; first < part.elements(); first += kChunkElements) {
    const size_t elements =
        std::min<int64_t>(kChunkElements, part.elements() - first);
    chunks_.push_back({.part = parts_.size(),
                       .first_element = part.first_element() + first,
                       .elements = elements});
  }
  parts_.push_back(part);
  return absl::OkStatus();
}

std::vector<size_t> PartLayout::ChunksInCheckpointOrder() const {
  std::vector<size_t> order(chunks_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [this](size_t a, size_t b) {
    return std::tie(parts_[chunks_[a].part].variable(),
                    chunks_[a].first_element) <
           std::tie(parts_[chunks_[b].part].variable(),
                    chunks_[b].first_element);
  });
  return order;
}

absl::Status PartLayout::CheckPartsDisjoint() const {
  const std::vector<size_t> order = ChunksInCheckpointOrder();
  for (size_t i = 1; i < order.size(); ++i) {
    const Chunk& last = chunks_[order[i - 1]];
    const Chunk& next = chunks_[order[i]];
    const int64_t last_end = last.first_element + last.elements;
    if (parts_[last.part].variable() == parts_[next.part].variable() &&
        next.first_element < last_end) {
      return BadPart(parts_[next.part],
                     absl::StrCat("overlaps part ", last.part));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<PartLayout::ChunkRanges> PartLayout::Resolve(
    const google::protobuf::RepeatedPtrField<wire::TensorRange>& ranges) const {
  if (ranges.empty() ||
      ranges.size() > static_cast<int>(kMaxRangesPerMessage)) {
    return absl::InvalidArgumentError(absl::StrCat(
        ranges.size(), " ranges, not 1 to ", kMaxRangesPerMessage));
  }
  ChunkRanges resolved;
  resolved.reserve(ranges.size());
  for (const wire::TensorRange& range : ranges) {
    ASSIGN_OR_RETURN(const ChunkRange chunks, ResolveOne(range));
    resolved.push_back(chunks);
  }
  if (resolved.size() > 1) {
    RETURN_IF_ERROR(CheckRangesDisjoint(ranges, resolved));
  }
  return resolved;
}

absl::StatusOr<PartLayout::ChunkRange> PartLayout::ResolveOne(
    const wire::TensorRange& range) const {
  if (range.part() >= parts_.size()) {
    return BadRange(range,
                    absl::StrCat("names a part that is not on this shard of ",
                                 parts_.size(), " parts"));
  }
  const uint64_t elements = parts_[range.part()].elements();
  if (range.count() == 0 || range.first() >= elements ||
      range.count() > elements - range.first()) {
    return BadRange(range, absl::StrCat("is empty or goes beyond the part's ",
                                        elements, " elements"));
  }
  const uint64_t end = range.first() + range.count();
  if (range.first() % kChunkElements != 0 ||
      (end % kChunkElements != 0 && end != elements)) {
    return BadRange(range,
                    absl::StrCat("does not begin and end with a chunk of ",
                                 kChunkElements, " elements"));
  }
  const size_t base = first_chunk_[range.part()];
  return ChunkRange{.first = base + range.first() / kChunkElements,
                    .last = base + (end + kChunkElements - 1) / kChunkElements,
                    .elements = range.count()};
}

}  // namespace parasol
