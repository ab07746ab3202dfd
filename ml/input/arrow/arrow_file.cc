#include "ml/input/arrow/arrow_file.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/file/known_format.h"

namespace parasol {
namespace {

constexpr absl::string_view kParquetMagic = "PAR1";
constexpr absl::string_view kArrowMagic = "ARROW1";
constexpr absl::string_view kArrowStreamStart = "\xff\xff\xff\xff";

absl::Status CheckIsArrow(const StoredFile& stored) {
  std::string start(std::min<uint64_t>(stored.size(), kKnownFormatBytes), '\0');
  RETURN_IF_ERROR(stored.Read(0, absl::MakeSpan(start)));
  if (absl::StartsWith(start, kParquetMagic) ||
      absl::StartsWith(start, kArrowMagic)) {
    return absl::OkStatus();
  }
  const auto refuse = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(stored.path(), ": ", what));
  };
  if (start.empty()) return refuse("the file is empty; it is no Parquet file");
  if (absl::StartsWith(start, kArrowStreamStart)) {
    return refuse("is an Arrow stream; save it as an Arrow file, or Parquet");
  }
  const std::string other = KnownFormat(start, /*is_text=*/true);
  if (!other.empty()) return refuse(other);
  return refuse(
      "is neither a Parquet nor an Arrow file: it begins with other bytes");
}

}  // namespace

int ArrowFile::ReadSource(void* context, int64_t offset, int64_t size,
                          void* out) {
  auto* const source = static_cast<Source*>(context);
  absl::Status status = source->stored->Read(
      static_cast<uint64_t>(offset),
      absl::MakeSpan(static_cast<char*>(out), static_cast<size_t>(size)));
  if (status.ok()) return 0;
  if (source->status.ok()) source->status = std::move(status);
  return 1;
}

absl::Status ArrowFile::Error(const Source& source, absl::string_view what,
                              int code) {
  if (!source.status.ok()) return source.status;
  const std::string text =
      absl::StrCat(source.stored->path(), ": ", OneLine(what));
  if (code != PARASOL_ARROW_NO_MEMORY) return absl::DataLossError(text);
  return absl::ResourceExhaustedError(absl::StrCat(
      text, "; free memory, or write the file with smaller row groups"));
}

absl::StatusOr<ArrowFile> ArrowFile::Open(const ArrowLibrary& library,
                                          const StoredFile& stored) {
  RETURN_IF_ERROR(CheckIsArrow(stored));
  auto source = std::make_unique<Source>();
  source->stored = &stored;
  const ParasolArrowInput input = {.context = source.get(),
                                   .size = static_cast<int64_t>(stored.size()),
                                   .read = &ArrowFile::ReadSource};
  ParasolArrowFile* opened = nullptr;
  char error[PARASOL_ARROW_ERROR_BYTES] = {};
  const int code = library.open(&input, &opened, error);
  if (code != 0) return Error(*source, error, code);
  ArrowFile file(library, std::move(source), Handle(opened, library.close));
  RETURN_IF_ERROR(file.ReadSchema());
  return file;
}

absl::Status ArrowFile::ReadSchema() {
  ArrowSchema schema = {};
  char error[PARASOL_ARROW_ERROR_BYTES] = {};
  const int code = library_.schema(handle_.get(), &schema, error);
  if (code != 0) return Error(*source_, error, code);
  for (int64_t i = 0; i < schema.n_children; ++i) {
    const ArrowSchema& child = *schema.children[i];
    columns_.push_back({.name = child.name == nullptr ? "" : child.name,
                        .type = ArrowTypeOf(child)});
  }
  schema.release(&schema);
  return absl::OkStatus();
}

std::vector<size_t> ArrowFile::Find(absl::string_view name) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].name == name) found.push_back(i);
  }
  return found;
}

absl::Status ArrowFile::ReadGroup(int64_t group,
                                  const std::vector<size_t>& columns,
                                  VisitRows visit) {
  const absl::Status status = ReadColumns(group, columns, visit);
  if (status.ok() || is_from_visit_ || !source_->status.ok() ||
      !absl::IsDataLoss(status)) {
    return status;
  }
  const std::string where = WhereDamaged(group, columns, status);
  // The bytes could not be read again: what `where` says is not known.
  RETURN_IF_ERROR(source_->status);
  return Damaged(group, where);
}

absl::Status ArrowFile::Damaged(int64_t group, absl::string_view what) const {
  return absl::DataLossError(
      absl::StrCat(source_->stored->path(), ", row group ", group, ": ", what));
}

absl::Status ArrowFile::ReadColumns(int64_t group,
                                    const std::vector<size_t>& columns,
                                    VisitRows visit) {
  is_from_visit_ = false;
  const std::vector<int> numbers(columns.begin(), columns.end());
  char error[PARASOL_ARROW_ERROR_BYTES] = {};
  const int code = library_.start(handle_.get(), group, numbers.data(),
                                  numbers.size(), error);
  if (code != 0) return Error(*source_, error, code);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_more, ReadPart(columns.size(), visit));
    if (!has_more) return absl::OkStatus();
  }
}

absl::StatusOr<bool> ArrowFile::ReadPart(size_t columns, VisitRows visit) {
  ArrowArray batch = {};
  char error[PARASOL_ARROW_ERROR_BYTES] = {};
  const int code = library_.next(handle_.get(), &batch, error);
  if (code != 0) return Error(*source_, error, code);
  if (batch.release == nullptr) return false;
  const absl::Cleanup release = [&batch] { batch.release(&batch); };
  if (batch.n_children != static_cast<int64_t>(columns) || batch.offset != 0) {
    return Error(*source_, "other columns than the file's schema has");
  }
  const std::vector<const ArrowArray*> arrays(batch.children,
                                              batch.children + columns);
  for (const ArrowArray* const array : arrays) {
    if (array->length < batch.length) {
      return Error(*source_, "columns of different lengths");
    }
  }
  const absl::Status visited = visit(batch.length, arrays);
  is_from_visit_ = !visited.ok();
  RETURN_IF_ERROR(visited);
  return true;
}

std::string ArrowFile::WhereDamaged(int64_t group,
                                    const std::vector<size_t>& columns,
                                    const absl::Status& status) {
  const auto ignore = [](int64_t, const std::vector<const ArrowArray*>&) {
    return absl::OkStatus();
  };
  const size_t path = source_->stored->path().size() + 2;
  for (const size_t column : columns) {
    const absl::Status alone = ReadColumns(group, {column}, ignore);
    if (!source_->status.ok()) break;
    if (!absl::IsDataLoss(alone)) continue;
    return absl::StrCat("column \"", ShownText(columns_[column].name), "\" (",
                        columns_[column].type.name,
                        "): ", alone.message().substr(path));
  }
  return std::string(status.message().substr(path));
}

}  // namespace parasol
