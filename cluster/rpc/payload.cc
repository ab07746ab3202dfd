#include "cluster/rpc/payload.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace parasol {

PayloadView::PayloadView(Pieces pieces, bool may_change)
    : pieces_(std::move(pieces)), may_change_(may_change) {
  for (absl::string_view piece : pieces_) size_ += piece.size();
}

void PayloadView::CopyTo(size_t first, size_t count, void* out) const {
  char* to = static_cast<char*>(out);
  for (absl::string_view piece : pieces_) {
    if (count == 0) return;
    if (first >= piece.size()) {
      first -= piece.size();
      continue;
    }
    const size_t n = std::min(count, piece.size() - first);
    std::memcpy(to, piece.data() + first, n);
    to += n;
    count -= n;
    first = 0;
  }
}

const std::byte* PayloadView::Contiguous(size_t first, size_t count,
                                         std::byte* scratch) const {
  size_t begin = 0;
  for (absl::string_view piece : pieces_) {
    if (first >= begin && first + count <= begin + piece.size()) {
      return reinterpret_cast<const std::byte*>(piece.data() + (first - begin));
    }
    begin += piece.size();
    if (begin > first) break;
  }
  CopyTo(first, count, scratch);
  return scratch;
}

}  // namespace parasol
