#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {
namespace {

constexpr absl::string_view kMark = ".part-";
constexpr absl::string_view kOf = "-of-";

// The place of a part, as its name says it.
struct PartName {
  std::string whole;  // the whole tensor's name
  int64_t part = 0;
  int64_t parts = 1;
};

// The parsed name; a name of another form is a whole tensor's.
PartName ParsePartName(const std::string& name) {
  const size_t mark = absl::string_view(name).rfind(kMark);
  const size_t of = absl::string_view(name).rfind(kOf);
  PartName parsed = {.whole = name};
  if (mark == std::string::npos || of == std::string::npos || of < mark) {
    return parsed;
  }
  const size_t number = mark + kMark.size();
  PartName found = {.whole = name.substr(0, mark)};
  if (!absl::SimpleAtoi(name.substr(number, of - number), &found.part) ||
      !absl::SimpleAtoi(name.substr(of + kOf.size()), &found.parts) ||
      found.part < 0 || found.part >= found.parts) {
    return parsed;
  }
  return found;
}

// A tensor whose elements lie in several tensors of the file.
struct Joined {
  struct Piece {
    size_t tensor = 0;  // of the file
    uint64_t end = 0;   // bytes of this piece and all before it
  };
  std::vector<Piece> pieces;
};

class JoinedTensors : public TensorReader {
 public:
  explicit JoinedTensors(std::unique_ptr<TensorReader> reader)
      : reader_(std::move(reader)) {}

  absl::Status Join() {
    std::map<std::string, std::map<int64_t, size_t>> parts;
    std::map<std::string, int64_t> counts;
    for (size_t i = 0; i < reader_->tensors().size(); ++i) {
      const PartName name = ParsePartName(reader_->tensors()[i].name);
      counts.emplace(name.whole, name.parts);
      if (counts[name.whole] != name.parts ||
          !parts[name.whole].emplace(name.part, i).second) {
        return absl::DataLossError(absl::StrCat(
            "tensor ", name.whole, " is cut into parts in two ways"));
      }
    }
    for (const auto& [name, indices] : parts) {
      if (static_cast<int64_t>(indices.size()) != counts[name]) {
        return absl::DataLossError(absl::StrCat("tensor ", name, " has ",
                                                indices.size(), " of its ",
                                                counts[name], " parts"));
      }
      RETURN_IF_ERROR(Add(name, indices));
    }
    return absl::OkStatus();
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    uint64_t begin = 0;
    for (const Joined::Piece& piece : joined_[tensor].pieces) {
      if (first < piece.end && !out.empty()) {
        const size_t count = std::min<uint64_t>(out.size(), piece.end - first);
        RETURN_IF_ERROR(
            reader_->Read(piece.tensor, first - begin, out.first(count)));
        out.remove_prefix(count);
        first += count;
      }
      begin = piece.end;
    }
    return out.empty() ? absl::OkStatus()
                       : absl::DataLossError(absl::StrCat(
                             "tensor ", tensors_[tensor].name,
                             " has fewer elements than were asked for"));
  }

 private:
  // Adds the tensor whose parts are those tensors of the file, in order.
  absl::Status Add(const std::string& name,
                   const std::map<int64_t, size_t>& indices) {
    Joined joined;
    TensorInfo whole = reader_->tensors()[indices.begin()->second];
    whole.name = name;
    int64_t rows = 0;
    uint64_t end = 0;
    for (const auto& [part, index] : indices) {
      TensorInfo info = reader_->tensors()[index];
      ASSIGN_OR_RETURN(const uint64_t bytes, CountBytes(info));
      joined.pieces.push_back({.tensor = index, .end = end += bytes});
      if (indices.size() == 1) continue;
      const bool fits = info.type == whole.type && !info.shape.empty() &&
                        info.shape.size() == whole.shape.size() &&
                        std::equal(info.shape.begin() + 1, info.shape.end(),
                                   whole.shape.begin() + 1) &&
                        !__builtin_add_overflow(rows, info.shape[0], &rows);
      if (!fits) {
        return absl::DataLossError(absl::StrCat(
            "the parts of tensor ", name, " have different shapes or types"));
      }
    }
    if (indices.size() > 1) whole.shape[0] = rows;
    RETURN_IF_ERROR(CountBytes(whole).status());
    joined_.push_back(std::move(joined));
    tensors_.push_back(std::move(whole));
    return absl::OkStatus();
  }

  const std::unique_ptr<TensorReader> reader_;
  std::vector<TensorInfo> tensors_;
  std::vector<Joined> joined_;  // order of `tensors_`
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorReader>> JoinParts(
    std::unique_ptr<TensorReader> reader) {
  auto joined = std::make_unique<JoinedTensors>(std::move(reader));
  RETURN_IF_ERROR(joined->Join());
  return joined;
}

}  // namespace parasol
