#include "deploy/tool/prediction_writer.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "storage/tensor_files/npy_header.h"
#include "storage/tensor_files/staged_file.h"

namespace parasol {
namespace {

// The longest text of a float32 that is written here.
constexpr size_t kNumberBytes = 32;
// Room for the header of an array with any number of examples.
constexpr size_t kNpyHeaderBytes = 192;

// As many digits as it takes to read the same bits back.
void AppendNumber(float value, std::string& text) {
  char digits[kNumberBytes];
  const auto end = std::to_chars(digits, digits + kNumberBytes, value).ptr;
  text.append(digits, end);
}

// How a line of text begins, ends, and has a number that is not finite.
struct LineForm {
  absl::string_view begin;
  absl::string_view end;
  absl::string_view not_finite;  // empty: "nan", "inf", "-inf"
};

constexpr LineForm kCsv = {"", "\n", ""};
constexpr LineForm kJson = {"[", "]\n", "null"};

class LineWriter : public PredictionWriter {
 public:
  LineWriter(StagedFile file, int64_t width, const LineForm& form)
      : file_(std::move(file)),
        width_(static_cast<size_t>(width)),
        form_(form) {}

  absl::Status Append(absl::Span<const float> outputs) override {
    text_.clear();
    for (size_t first = 0; first < outputs.size(); first += width_) {
      absl::StrAppend(&text_, form_.begin);
      for (size_t i = 0; i < width_; ++i) {
        if (i > 0) text_ += ',';
        AppendOutput(outputs[first + i]);
      }
      absl::StrAppend(&text_, form_.end);
    }
    return file_.Append(text_);
  }

  absl::Status Finish() override { return file_.Commit(); }

 private:
  void AppendOutput(float value) {
    if (!std::isfinite(value) && !form_.not_finite.empty()) {
      absl::StrAppend(&text_, form_.not_finite);
    } else {
      AppendNumber(value, text_);
    }
  }

  StagedFile file_;
  const size_t width_;
  const LineForm form_;
  std::string text_;  // kept for its memory
};

class NpyWriter : public PredictionWriter {
 public:
  NpyWriter(StagedFile file, int64_t width)
      : file_(std::move(file)), width_(width) {}

  // The number of examples is not known yet.
  absl::Status WriteHeader() { return file_.Append(Header(0)); }

  absl::Status Append(absl::Span<const float> outputs) override {
    elements_ += static_cast<int64_t>(outputs.size());
    return file_.Append(
        absl::string_view(reinterpret_cast<const char*>(outputs.data()),
                          outputs.size() * sizeof(float)));
  }

  absl::Status Finish() override {
    RETURN_IF_ERROR(file_.Overwrite(0, Header(elements_ / width_)));
    return file_.Commit();
  }

 private:
  std::string Header(int64_t examples) const {
    return NpyHeader(
        {.type = ElementType::kFloat32, .shape = {examples, width_}},
        kNpyHeaderBytes);
  }

  StagedFile file_;
  const int64_t width_;
  int64_t elements_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PredictionWriter>> PredictionWriter::Create(
    const std::string& path, int64_t width) {
  const bool is_npy = absl::EndsWith(path, ".npy");
  const bool is_json = absl::EndsWith(path, ".jsonl");
  if (!is_npy && !is_json && !absl::EndsWith(path, ".csv")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--output=", path, ": must end with .csv, .jsonl or .npy"));
  }
  ASSIGN_OR_RETURN(StagedFile file, StagedFile::Create(path));
  if (!is_npy) {
    return std::make_unique<LineWriter>(std::move(file), width,
                                        is_json ? kJson : kCsv);
  }
  auto writer = std::make_unique<NpyWriter>(std::move(file), width);
  RETURN_IF_ERROR(writer->WriteHeader());
  return writer;
}

}  // namespace parasol
