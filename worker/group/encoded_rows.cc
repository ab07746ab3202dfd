#include "worker/group/encoded_rows.h"

#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

struct Header {
  int64_t replica = 0;
  int64_t rows = 0;
};

// One replica's gradients, where they lie in a message.
struct Part {
  const std::byte* ids = nullptr;
  const std::byte* gradients = nullptr;
  size_t rows = 0;
  const std::byte* counts = nullptr;
};

// In Header::rows: counts follow the elements.
constexpr int64_t kHasCounts = int64_t{1} << 62;

// By replica.
using Parts = std::map<int, Part>;

absl::Status NoRows(const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("gradients of rows from a peer: ", why));
}

// Adds the parts of one worker's message to `parts`.
absl::Status FindParts(absl::string_view message, size_t width, int replicas,
                       Parts& parts) {
  while (!message.empty()) {
    Header header;
    if (message.size() < sizeof(header)) return NoRows("a header is cut off");
    std::memcpy(&header, message.data(), sizeof(header));
    message.remove_prefix(sizeof(header));
    const bool has_counts = (header.rows & kHasCounts) != 0;
    header.rows &= ~kHasCounts;
    const size_t row_bytes = sizeof(uint64_t) + width * sizeof(float) +
                             (has_counts ? sizeof(uint32_t) : 0);
    if (header.rows < 0 ||
        static_cast<uint64_t>(header.rows) > message.size() / row_bytes) {
      return NoRows(absl::StrCat("replica ", header.replica, " has ",
                                 header.rows, " rows, but ", message.size(),
                                 " bytes are left"));
    }
    if (header.replica < 0 || header.replica >= replicas) {
      return NoRows(absl::StrCat("there is no replica ", header.replica));
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(message.data());
    const size_t rows = header.rows;
    const std::byte* const gradients = bytes + rows * sizeof(uint64_t);
    const Part part = {.ids = bytes,
                       .gradients = gradients,
                       .rows = rows,
                       .counts = has_counts
                                     ? gradients + rows * width * sizeof(float)
                                     : nullptr};
    if (!parts.emplace(header.replica, part).second) {
      return NoRows(
          absl::StrCat("replica ", header.replica, " is there twice"));
    }
    message.remove_prefix(rows * row_bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<Parts> PartsOf(const std::vector<std::string>& encoded,
                              size_t width, int replicas) {
  Parts parts;
  for (size_t rank = 0; rank < encoded.size(); ++rank) {
    RETURN_IF_ERROR(FindParts(encoded[rank], width, replicas, parts))
        << "rank " << rank;
  }
  if (static_cast<int>(parts.size()) != replicas) {
    return NoRows(absl::StrCat("those of ", parts.size(), " replicas of ",
                               replicas, " are there"));
  }
  return parts;
}

}  // namespace

std::string EncodeRows(int replica, absl::Span<const uint64_t> ids,
                       absl::Span<const float> gradients,
                       absl::Span<const uint32_t> counts) {
  const Header header = {.replica = replica,
                         .rows = static_cast<int64_t>(ids.size()) |
                                 (counts.empty() ? 0 : kHasCounts)};
  std::string bytes(sizeof(header) + ids.size() * sizeof(uint64_t) +
                        gradients.size() * sizeof(float) +
                        counts.size() * sizeof(uint32_t),
                    '\0');
  char* next = bytes.data();
  const auto append = [&next](const void* data, size_t size) {
    if (size > 0) std::memcpy(next, data, size);
    next += size;
  };
  append(&header, sizeof(header));
  append(ids.data(), ids.size() * sizeof(uint64_t));
  append(gradients.data(), gradients.size() * sizeof(float));
  append(counts.data(), counts.size() * sizeof(uint32_t));
  return bytes;
}

absl::Status CheckRows(const std::vector<std::string>& encoded, size_t width,
                       int replicas) {
  return PartsOf(encoded, width, replicas).status();
}

absl::StatusOr<RowGradients> MeansOfRows(
    const std::vector<std::string>& encoded, size_t width, int replicas,
    RowAccumulator& sums) {
  ASSIGN_OR_RETURN(const Parts parts, PartsOf(encoded, width, replicas));
  for (const auto& [replica, part] : parts) {
    sums.Add(replica, part.ids, part.gradients, part.rows, part.counts);
  }
  return sums.TakeMeans();
}

}  // namespace parasol
