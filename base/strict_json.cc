#include "base/strict_json.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

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

// Reads characters, and notes the furthest one that was read.
class CountedCharacter {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountedCharacter(const char* at, const char** furthest)
      : at_(at), furthest_(furthest) {}

  reference operator*() const { return *at_; }
  CountedCharacter& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  bool operator==(const CountedCharacter& other) const {
    return at_ == other.at_;
  }
  bool operator!=(const CountedCharacter& other) const {
    return at_ != other.at_;
  }

 private:
  const char* at_;
  const char** furthest_;
};

// Builds the value from the parser's events and stops at what ParseStrictJson
// refuses. `open_` points into `root_`: an array does not grow, and an object
// does not either, while something inside it is open.
template <typename Json>
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  using Visit =
      absl::FunctionRef<absl::Status(const std::string&, const Json&)>;

  // With `visit` the members of the outermost object, of so many values at
  // most, are given to it instead of being kept.
  StrictBuilder(absl::string_view text, std::optional<Visit> visit,
                size_t max_member_values = kMaxMemberValues)
      : text_(text),
        furthest_(text.data()),
        visit_(visit),
        max_member_values_(max_member_values) {}

  absl::StatusOr<Json> Parse() && {
    const CountedCharacter begin(text_.data(), &furthest_);
    const CountedCharacter end(text_.data() + text_.size(), &furthest_);
    const bool parsed = Json::sax_parse(begin, end, this);
    if (!error_.ok()) return error_;
    if (!parsed) return absl::InvalidArgumentError("not JSON");
    return std::move(root_);
  }

  bool null() override { return AddLeaf(nullptr); }
  bool boolean(bool value) override { return AddLeaf(value); }
  bool number_integer(int64_t value) override { return AddLeaf(value); }
  bool number_unsigned(uint64_t value) override { return AddLeaf(value); }
  bool number_float(double value, const std::string&) override {
    return AddLeaf(value);
  }
  bool string(std::string& value) override { return AddLeaf(std::move(value)); }
  bool binary(typename Json::binary_t&) override { return false; }

  bool start_object(size_t) override { return Open(Json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }

  bool key(std::string& key) override {
    auto& members = open_.back()->template get_ref<typename Json::object_t&>();
    if (IsVisited()) {
      members.clear();
      keys_.back().clear();
      values_ = 0;
      name_ = key;
    }
    if (!keys_.back().insert(key).second) {
      const Json shown(key.substr(0, kMaxReasonBytes));
      return Refuse(absl::StrCat("key ",
                                 shown.dump(-1, ' ', /*ensure_ascii=*/true,
                                            Json::error_handler_t::replace),
                                 " appears twice"));
    }
    member_ = &Append(members, key);
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    error_ = absl::InvalidArgumentError(absl::StrCat(
        Position(text_, position), ": not JSON: ", Reason(error.what())));
    return false;
  }

 private:
  // Adds a key that is not there: at the end, where the order is kept, without
  // a look at the others.
  static Json& Append(typename Json::object_t& members,
                      const std::string& key) {
    if constexpr (std::is_same_v<Json, nlohmann::ordered_json>) {
      members.push_back({key, nullptr});
      return members.back().second;
    } else {
      return members.emplace(key, nullptr).first->second;
    }
  }

  // Returns true if what is innermost now is the object whose members are
  // given away.
  bool IsVisited() const { return visit_.has_value() && open_.size() == 1; }

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

  bool AddLeaf(Json value) {
    if (visit_.has_value() && open_.empty()) return Refuse("not an object");
    if (!CountValue()) return false;
    Add(std::move(value));
    return !IsVisited() || GiveMember();
  }

  bool Open(Json container) {
    if (open_.size() == kMaxJsonDepth) {
      return Refuse(absl::StrCat("nested deeper than ", kMaxJsonDepth));
    }
    if (visit_.has_value() && open_.empty() && !container.is_object()) {
      return Refuse("not an object");
    }
    if (!CountValue()) return false;
    open_.push_back(Add(std::move(container)));
    keys_.emplace_back();
    return true;
  }

  bool Close() {
    open_.pop_back();
    keys_.pop_back();
    return !IsVisited() || GiveMember();
  }

  bool CountValue() {
    ++values_;
    if (!visit_.has_value() || values_ <= max_member_values_) return true;
    return Refuse(absl::StrCat("more than ", max_member_values_,
                               " values in one member"));
  }

  bool GiveMember() {
    error_ = (*visit_)(name_, open_.front()->front());
    return error_.ok();
  }

  bool Refuse(absl::string_view why) {
    error_ = absl::InvalidArgumentError(
        absl::StrCat(Position(text_, furthest_ - text_.data()), ": ", why));
    return false;
  }

  const absl::string_view text_;
  const char* furthest_;
  const std::optional<Visit> visit_;
  const size_t max_member_values_;
  absl::Status error_;
  Json root_;
  std::vector<Json*> open_;
  // Keys of each that is open; none of an array.
  std::vector<std::set<std::string>> keys_;
  Json* member_ = nullptr;  // place of the last key's value
  std::string name_;        // of the member that is being visited
  size_t values_ = 0;       // in it
};

// The parser would take a NUL byte for the end of the text.
absl::Status CheckNoNul(absl::string_view text) {
  const size_t nul = text.find('\0');
  if (nul == absl::string_view::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Position(text, nul + 1), ": not JSON: a NUL byte"));
}

template <typename Json>
absl::StatusOr<Json> ParseLimited(absl::string_view text) {
  if (text.size() > kMaxJsonBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        text.size(), " bytes are more than the limit of ", kMaxJsonBytes));
  }
  RETURN_IF_ERROR(CheckNoNul(text));
  return StrictBuilder<Json>(text, std::nullopt).Parse();
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text) {
  return ParseLimited<nlohmann::json>(text);
}

absl::StatusOr<nlohmann::ordered_json> ParseOrderedJson(
    absl::string_view text) {
  return ParseLimited<nlohmann::ordered_json>(text);
}

absl::Status VisitJsonMembers(
    absl::string_view text,
    absl::FunctionRef<absl::Status(const std::string& name,
                                   const nlohmann::json& value)>
        visit,
    size_t max_member_values) {
  RETURN_IF_ERROR(CheckNoNul(text));
  return StrictBuilder<nlohmann::json>(text, visit, max_member_values)
      .Parse()
      .status();
}

}  // namespace parasol
