#include "cluster/cluster_spec/strict_json.h"

#include <algorithm>
#include <cstdint>
#include <ios>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace parasol {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxReasonBytes = 200;

// "line 1, column 7" of the byte before `offset`: the last one that was read.
std::string Position(absl::string_view text, size_t offset) {
  const absl::string_view before =
      text.substr(0, std::max<size_t>(offset, 1) - 1);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t line_start =
      newline == absl::string_view::npos ? 0 : newline + 1;
  return absl::StrCat("line ", lines + 1, ", column ",
                      before.size() - line_start + 1);
}

// The library's explanation without its own prefix, as one line of ASCII: it
// quotes bytes of the input.
std::string Reason(absl::string_view what) {
  const size_t id_end = what.find("] ");
  if (id_end != absl::string_view::npos) what.remove_prefix(id_end + 2);
  if (absl::StartsWith(what, "parse error at ")) {
    what.remove_prefix(std::min(what.size(), what.find(": ") + 2));
  }
  std::string reason(what.substr(0, kMaxReasonBytes));
  for (char& c : reason) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return reason;
}

// Builds the value from the parser's events and stops at what ParseStrictJson
// refuses. `open_` points into `root_`: an array does not grow, and a map does
// not move, while something inside it is open.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  // `stream` is what the parser reads `text` from; it tells how far it got.
  StrictBuilder(absl::string_view text, std::istringstream& stream)
      : text_(text), stream_(stream) {}

  absl::StatusOr<Json> Finish(bool parsed) && {
    if (!error_.ok()) return error_;
    if (!parsed) return absl::InvalidArgumentError("not JSON");
    return std::move(root_);
  }

  bool null() override { return Add(nullptr) != nullptr; }
  bool boolean(bool value) override { return Add(value) != nullptr; }
  bool number_integer(int64_t value) override { return Add(value) != nullptr; }
  bool number_unsigned(uint64_t value) override {
    return Add(value) != nullptr;
  }
  bool number_float(double value, const std::string&) override {
    return Add(value) != nullptr;
  }
  bool string(std::string& value) override {
    return Add(std::move(value)) != nullptr;
  }
  bool binary(Json::binary_t&) override { return false; }

  bool start_object(size_t) override { return Open(Json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }

  bool key(std::string& key) override {
    auto& members = open_.back()->get_ref<Json::object_t&>();
    const auto [member, inserted] = members.emplace(key, nullptr);
    if (!inserted) {
      return Refuse(absl::StrCat("key ", Json(key).dump(-1, ' ', true),
                                 " appears twice"));
    }
    member_ = &member->second;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    error_ = absl::InvalidArgumentError(absl::StrCat(
        Position(text_, position), ": not JSON: ", Reason(error.what())));
    return false;
  }

 private:
  Json* Add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_object()) {
      *member_ = std::move(value);
      return member_;
    }
    open_.back()->push_back(std::move(value));
    return &open_.back()->back();
  }

  bool Open(Json container) {
    if (open_.size() == kMaxJsonDepth) {
      return Refuse(absl::StrCat("nested deeper than ", kMaxJsonDepth));
    }
    open_.push_back(Add(std::move(container)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  bool Refuse(absl::string_view why) {
    const std::streamoff offset =
        stream_.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in);
    error_ = absl::InvalidArgumentError(
        absl::StrCat(Position(text_, offset), ": ", why));
    return false;
  }

  const absl::string_view text_;
  std::istringstream& stream_;
  absl::Status error_;
  Json root_;
  std::vector<Json*> open_;
  Json* member_ = nullptr;  // place of the last key's value
};

}  // namespace

absl::StatusOr<Json> ParseStrictJson(absl::string_view text) {
  if (text.size() > kMaxJsonBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        text.size(), " bytes are more than the limit of ", kMaxJsonBytes));
  }
  // The parser would take a NUL byte for the end of the text.
  if (const size_t nul = text.find('\0'); nul != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(Position(text, nul + 1), ": not JSON: a NUL byte"));
  }
  std::istringstream stream{std::string(text)};
  StrictBuilder builder(text, stream);
  const bool parsed = Json::sax_parse(stream, &builder);
  return std::move(builder).Finish(parsed);
}

}  // namespace parasol
