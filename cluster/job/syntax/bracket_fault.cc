#include "cluster/job/syntax/bracket_fault.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

constexpr absl::string_view kOpening = "{[<";
constexpr absl::string_view kClosing = "}]>";

char CloseFor(char open) { return kClosing[kOpening.find(open)]; }

// A bracket that is open.
struct OpenBracket {
  char bracket = '{';
  int line = 0;
  int column = 0;
  int indent = 0;     // of its line
  std::string block;  // "layer {"
};

// Goes over a text, token by token.
class BracketScan {
 public:
  explicit BracketScan(absl::string_view text) : text_(text) {}

  std::optional<BracketFault> Run() {
    while (at_ < text_.size() && !fault_.has_value()) Step();
    if (fault_.has_value()) return fault_;
    // One that a bracket of another block has closed is the likelier one.
    if (!open_.empty()) {
      const OpenBracket& lacking =
          doubtful_.has_value() ? *doubtful_ : open_.back();
      Fail(lacking.line, lacking.column,
           absl::StrCat("\"", lacking.block, "\" is not closed: the file ",
                        doubtful_.has_value() ? "lacks its "
                                              : "ends inside it, "
                                                "without its ",
                        std::string(1, CloseFor(lacking.bracket))));
    } else {
      fault_ = broken_string_;
    }
    return fault_;
  }

 private:
  void Fail(int line, int column, std::string message) {
    // A string that has taken in lines explains what comes behind it.
    fault_ = broken_string_.has_value()
                 ? broken_string_
                 : std::optional<BracketFault>(
                       BracketFault{.line = line,
                                    .column = column,
                                    .message = std::move(message)});
  }

  void Step() {
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '"' || c == '\'') {
      TakeString(c);
    } else {
      if (kOpening.find(c) != absl::string_view::npos) Open(c);
      if (kClosing.find(c) != absl::string_view::npos) Close(c);
      Advance();
    }
  }

  void Advance() {
    if (text_[at_] == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
    ++at_;
  }

  int column() const { return static_cast<int>(at_ - line_start_); }

  int Indent() const {
    const size_t first =
        std::min(text_.find_first_not_of(" \t", line_start_), text_.size());
    return static_cast<int>(first - line_start_);
  }

  void TakeString(char quote) {
    const int line = line_;
    const int column_of_quote = column();
    Advance();
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) Advance();
      Advance();
    }
    const bool ends = at_ < text_.size();
    if (ends) Advance();
    if ((!ends || line_ > line) && !broken_string_.has_value()) {
      broken_string_ = {
          .line = line,
          .column = column_of_quote,
          .message = absl::StrCat("the string that begins here has no closing ",
                                  std::string(1, quote), " in its line",
                                  ends ? "" : ", nor behind it")};
    }
  }

  // "layer {", with the name before the bracket.
  std::string BlockAt(char bracket) const {
    size_t end = at_;
    while (end > 0 &&
           (absl::ascii_isspace(text_[end - 1]) || text_[end - 1] == ':')) {
      --end;
    }
    size_t begin = end;
    while (begin > 0 &&
           (absl::ascii_isalnum(text_[begin - 1]) || text_[begin - 1] == '_')) {
      --begin;
    }
    const std::string name(text_.substr(begin, end - begin));
    return absl::StrCat(ShownText(name), name.empty() ? "" : " ",
                        std::string(1, bracket));
  }

  void Open(char bracket) {
    open_.push_back({.bracket = bracket,
                     .line = line_,
                     .column = column(),
                     .indent = Indent(),
                     .block = BlockAt(bracket)});
  }

  void Close(char bracket) {
    const std::string shown(1, bracket);
    if (open_.empty()) {
      return Fail(line_, column(),
                  absl::StrCat("this ", shown,
                               " closes nothing: no block is open; remove it, "
                               "or look for one too many before it"));
    }
    const OpenBracket last = open_.back();
    if (CloseFor(last.bracket) != bracket) {
      return Fail(line_, column(),
                  absl::StrCat("this ", shown, " is where \"", last.block,
                               "\" of line ", last.line + 1, " needs its ",
                               std::string(1, CloseFor(last.bracket))));
    }
    open_.pop_back();
    const bool begins_line = column() == Indent();
    if (begins_line && last.line < line_ && Indent() < last.indent &&
        !doubtful_.has_value()) {
      doubtful_ = last;
    }
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int line_ = 0;
  size_t line_start_ = 0;
  std::vector<OpenBracket> open_;
  // The first block that a bracket further left has closed.
  std::optional<OpenBracket> doubtful_;
  std::optional<BracketFault> broken_string_;
  std::optional<BracketFault> fault_;
};

}  // namespace

std::optional<BracketFault> FindBracketFault(absl::string_view text) {
  return BracketScan(text).Run();
}

}  // namespace parasol
