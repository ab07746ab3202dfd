#include "cluster/job/syntax/job_tokens.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::Tokenizer;

constexpr absl::string_view kOpen = "{<[";
constexpr absl::string_view kClose = "}>]";

class NoErrors : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override { has_errors_ = true; }
  bool has_errors() const { return has_errors_; }

 private:
  bool has_errors_ = false;
};

bool IsOneOf(absl::string_view text, absl::string_view symbols) {
  return text.size() == 1 && symbols.find(text[0]) != absl::string_view::npos;
}

// The offset of the next token at or behind `at`: behind blanks and comments.
size_t SkipBlanks(absl::string_view text, size_t at) {
  while (at < text.size()) {
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (absl::ascii_isspace(text[at])) {
      ++at;
    } else {
      break;
    }
  }
  return at;
}

}  // namespace

JobTokens::JobTokens(const std::string& text) {
  NoErrors errors;
  google::protobuf::io::ArrayInputStream stream(text.data(),
                                                static_cast<int>(text.size()));
  Tokenizer tokenizer(&stream, &errors);
  tokenizer.set_allow_f_after_float(true);
  tokenizer.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
  tokenizer.set_require_space_after_number(false);
  tokenizer.set_allow_multiline_strings(true);
  size_t at = 0;
  std::string open;
  bool is_balanced = true;
  while (tokenizer.Next()) {
    const Tokenizer::Token& token = tokenizer.current();
    at = SkipBlanks(text, at);
    if (text.compare(at, token.text.size(), token.text) != 0) return;
    tokens_.push_back({.text = token.text,
                       .is_name = token.type == Tokenizer::TYPE_IDENTIFIER,
                       .is_string = token.type == Tokenizer::TYPE_STRING,
                       .line = token.line,
                       .column = token.column,
                       .offset = at});
    at += token.text.size();
    if (IsOneOf(token.text, kOpen)) open += token.text;
    if (!IsOneOf(token.text, kClose)) continue;
    is_balanced = is_balanced && !open.empty() &&
                  kOpen.find(open.back()) == kClose.find(token.text[0]);
    if (!open.empty()) open.pop_back();
  }
  is_balanced_ = is_balanced && open.empty() && !errors.has_errors();
}

bool JobTokens::Is(size_t token, char symbol) const {
  return token < tokens_.size() && tokens_[token].text.size() == 1 &&
         tokens_[token].text[0] == symbol;
}

bool JobTokens::BeginsField(size_t token) const {
  return token < tokens_.size() && tokens_[token].is_name &&
         (Is(token + 1, ':') || Is(token + 1, '{') || Is(token + 1, '<'));
}

size_t JobTokens::EndOfField(size_t name) const {
  size_t at = name + 1;
  if (Is(at, ':')) ++at;
  if (at < tokens_.size() && IsOneOf(tokens_[at].text, kOpen)) {
    int depth = 0;
    for (; at < tokens_.size(); ++at) {
      if (IsOneOf(tokens_[at].text, kOpen)) ++depth;
      if (IsOneOf(tokens_[at].text, kClose) && --depth == 0) break;
    }
    ++at;
  } else {
    if (Is(at, '-')) ++at;
    const bool is_string = at < tokens_.size() && tokens_[at].is_string;
    ++at;
    while (is_string && at < tokens_.size() && tokens_[at].is_string) ++at;
  }
  if (Is(at, ',') || Is(at, ';')) ++at;
  return std::min(at, tokens_.size());
}

bool JobTokens::LacksColon(size_t value) const {
  if (value == 0 || value >= tokens_.size()) return false;
  if (!tokens_[value - 1].is_name || BeginsField(value - 1)) return false;
  if (IsOneOf(tokens_[value].text, "{}<>[],;")) return false;
  return value == 1 || !IsOneOf(tokens_[value - 2].text, ":[,");
}

std::optional<JobTokens::Field> JobTokens::FieldAt(int line, int column) const {
  if (!is_balanced_) return std::nullopt;
  const auto found = std::find_if(
      tokens_.begin(), tokens_.end(), [line, column](const Token& token) {
        return std::pair(token.line, token.column) >= std::pair(line, column);
      });
  const size_t stop = found - tokens_.begin();
  size_t name = stop;
  while (name > 0 && !BeginsField(name - 1)) --name;
  if (name == 0) return std::nullopt;
  --name;
  size_t end = EndOfField(name);
  if (LacksColon(stop)) {
    name = stop - 1;
    end = stop + 1;
  }
  if (end < stop) return std::nullopt;
  Field field = {.name = tokens_[name].text,
                 .line = tokens_[name].line,
                 .column = tokens_[name].column,
                 .offset = tokens_[name].offset,
                 .end = tokens_[end - 1].offset + tokens_[end - 1].text.size()};
  if (Is(name + 1, ':') && name + 2 < end && !tokens_[name + 2].is_string &&
      !IsOneOf(tokens_[name + 2].text, kOpen)) {
    field.value = tokens_[name + 2].text;
    field.value_offset = tokens_[name + 2].offset;
  }
  if (!FindMessage(name, field)) return std::nullopt;
  return field;
}

std::string JobTokens::Unbracketed(std::string text,
                                   absl::string_view name) const {
  if (!is_balanced_) return text;
  std::string changed;
  size_t copied = 0;  // bytes of `text`
  const auto replace = [&](const Token& token, absl::string_view with) {
    absl::StrAppend(&changed, text.substr(copied, token.offset - copied), with);
    copied = token.offset + token.text.size();
  };
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const bool is_list = tokens_[i].text == name && Is(i + 1, ':') &&
                         Is(i + 2, '[') && (Is(i + 3, '{') || Is(i + 3, '<'));
    if (!is_list) continue;
    for (size_t of_name = i; of_name < i + 3; ++of_name) {
      replace(tokens_[of_name], "");
    }
    int depth = 0;
    for (i += 3; depth > 0 || !Is(i, ']'); ++i) {
      const Token& token = tokens_[i];
      if (depth == 0 && Is(i, ',')) replace(token, "");
      if (IsOneOf(token.text, kClose)) --depth;
      if (!IsOneOf(token.text, kOpen)) continue;
      if (depth++ == 0) replace(token, absl::StrCat(name, " ", token.text));
    }
    replace(tokens_[i], "");
  }
  return absl::StrCat(changed, text.substr(copied));
}

bool JobTokens::FindMessage(size_t name, Field& field) const {
  // A message or a list that is open at a token.
  struct Open {
    const Descriptor* message = nullptr;  // of the fields in it
    std::string path = {};
    std::map<std::string, int> seen = {};  // number of each field's elements
  };
  std::vector<Open> open = {{.message = job::Job::descriptor(), .path = ""}};
  const auto path_of = [&open](const FieldDescriptor* known,
                               const std::string& text) {
    Open& around = open.back();
    const std::string path =
        absl::StrCat(around.path, around.path.empty() ? "" : ".", text);
    if (known == nullptr || !known->is_repeated()) return path;
    return absl::StrCat(path, "[", around.seen[text]++, "]");
  };
  std::string next_path;
  const Descriptor* next_message = nullptr;
  for (size_t i = 0; i < name; ++i) {
    if (BeginsField(i) && open.back().message != nullptr) {
      const FieldDescriptor* const known =
          open.back().message->FindFieldByName(tokens_[i].text);
      next_path = path_of(known, tokens_[i].text);
      next_message = known == nullptr ? nullptr : known->message_type();
    } else if (IsOneOf(tokens_[i].text, kOpen)) {
      open.push_back({.message = next_message, .path = next_path});
    } else if (IsOneOf(tokens_[i].text, kClose)) {
      if (open.size() > 1) open.pop_back();
    }
  }
  field.message = open.back().message;
  if (field.message == nullptr) return false;
  field.path = path_of(field.message->FindFieldByName(field.name), field.name);
  return true;
}

}  // namespace parasol
