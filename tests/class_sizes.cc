#include "tests/class_sizes.h"

#include <cctype>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "re2/re2.h"

namespace parasol {
namespace {

// Returns the text of `file` without comments, preprocessor lines and what is
// in quotes.
std::string CodeOf(const SourceFile& file) {
  static const RE2 quoted(R"re("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)')re");
  static const RE2 comment("//.*");
  std::string code;
  for (std::string line : file.lines) {
    RE2::GlobalReplace(&line, quoted, "0");
    RE2::GlobalReplace(&line, comment, "");
    if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "#")) {
      absl::StrAppend(&code, line, "\n");
    }
  }
  return code;
}

// Returns the statements of the class body that begins at `start`, without
// what is between braces: "public:" and each declaration.
std::vector<std::string> StatementsOf(absl::string_view code, size_t start) {
  std::vector<std::string> statements(1);
  int depth = 1;
  for (size_t i = start; i < code.size() && depth > 0; ++i) {
    const char c = code[i];
    if (c == '{') ++depth;
    if (depth == 1 && c != '}') {
      // A colon that stands alone ends a label.
      const bool label = c == ':' && code[i + 1] != ':' && code[i - 1] != ':';
      if (c == ';' ||
          (label && RE2::FullMatch(statements.back(), R"(\s*(public|protected|)"
                                                      R"(private)\s*)"))) {
        if (label) statements.back() += ":";
        statements.emplace_back();
      } else {
        statements.back() += c;
      }
    }
    if (c == '}' && --depth == 1) {
      // A function's body ends its definition; a value goes on to a ";".
      const size_t next = code.find_first_not_of(" \n", i + 1);
      if (next != code.npos && !absl::StrContains(";,{)", code[next])) {
        statements.emplace_back();
      }
    }
  }
  return statements;
}

// Counts what the declaration `statement` adds to `size`.
void Count(std::string statement, bool is_public, ClassSize& size) {
  static const RE2 macro(R"(\bABSL_\w+\s*(\([^()]*\))?)");
  static const RE2 arguments("<[^<>]*>");
  static const RE2 other(
      R"(^(using|friend|static_assert|enum|struct|class|static constexpr)\b)");
  static const RE2 function(R"((~?\w+|operator\W+)\s*\()");
  RE2::GlobalReplace(&statement, macro, "");
  while (RE2::Replace(&statement, arguments, "")) {
  }
  RE2::Replace(&statement, R"(^\s*template\b)", "");
  absl::StripAsciiWhitespace(&statement);
  if (statement.empty() || RE2::PartialMatch(statement, other) ||
      absl::StrContains(statement, "= delete")) {
    return;
  }
  std::string name;
  if (!RE2::PartialMatch(statement, function, &name)) {
    ++size.fields;
  } else if (is_public && name != size.name && name != "~" + size.name) {
    ++size.public_methods;
  }
}

}  // namespace

std::vector<ClassSize> ClassSizes(const SourceFile& file) {
  static const RE2 definition(
      R"(\b(enum\s+)?class\s+(?:ABSL_\w+(?:\([^)]*\))?\s+)?(\w+))"
      R"((?:\s+final)?(?:\s*:[^:{;][^{;]*)?\s*\{)");
  const std::string code = CodeOf(file);
  std::vector<ClassSize> sizes;
  re2::StringPiece rest = code;
  std::string enumeration;
  ClassSize size;
  while (RE2::FindAndConsume(&rest, definition, &enumeration, &size.name)) {
    if (!enumeration.empty()) continue;
    bool is_public = false;
    for (std::string& statement :
         StatementsOf(code, code.size() - rest.size())) {
      const absl::string_view word = absl::StripAsciiWhitespace(statement);
      if (absl::EndsWith(word, ":")) {
        is_public = word == "public:";
      } else {
        Count(std::move(statement), is_public, size);
      }
    }
    sizes.push_back(std::exchange(size, {}));
  }
  return sizes;
}

}  // namespace parasol
