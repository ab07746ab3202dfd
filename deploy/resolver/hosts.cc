#include "deploy/resolver/hosts.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr size_t kMaxQuotedBytes = 100;

bool IsHostCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
         c == '-' || c == '_';
}

bool IsIpv6Character(char c) {
  return IsHostCharacter(c) || c == ':' || c == '%';
}

// Only the form; whether a name is a host's, its user finds out.
bool IsHostName(absl::string_view name) {
  if (absl::StartsWith(name, "[") && absl::EndsWith(name, "]")) {
    return name.size() > 2 &&
           std::all_of(name.begin() + 1, name.end() - 1, IsIpv6Character);
  }
  // What starts with '-' would be an option of ssh.
  return !name.empty() && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), IsHostCharacter);
}

// A number of slots; nullopt for any other text.
std::optional<int> ReadSlots(absl::string_view digits) {
  int slots = 0;
  if (digits.empty() ||
      !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(digits, &slots) || slots < 1 || slots > kMaxProcesses) {
    return std::nullopt;
  }
  return slots;
}

// Collects hosts, each once.
class HostCollector {
 public:
  absl::Status Add(absl::string_view name, absl::string_view slots_text) {
    if (!IsHostName(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(name),
                       " is not a host: write a DNS name, an IPv4 address, or "
                       "an IPv6 address in brackets"));
    }
    const std::optional<int> slots = ReadSlots(slots_text);
    if (!slots.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(slots_text), " is not a number of processes on ",
                       Quoted(name), ": write 1 to ", kMaxProcesses));
    }
    total_ += *slots;
    if (total_ > kMaxProcesses) {
      return absl::InvalidArgumentError(absl::StrCat(
          "more than ", kMaxProcesses, " processes with ", Quoted(name),
          " (its number is one of processes, not a port)"));
    }
    const auto [known, is_new] = index_.emplace(name, hosts_.size());
    if (is_new) hosts_.push_back({std::string(name), 0});
    hosts_[known->second].slots += *slots;
    return absl::OkStatus();
  }

  std::vector<Host> Finish() && { return std::move(hosts_); }

 private:
  std::vector<Host> hosts_;
  std::map<std::string, size_t, std::less<>> index_;
  int total_ = 0;
};

// "b:2" as "b" and "2". The colons of an IPv6 address are in brackets.
std::pair<absl::string_view, absl::string_view> SplitSlots(
    absl::string_view element) {
  const size_t bracket = element.rfind(']');
  const size_t colon =
      element.find(':', bracket == absl::string_view::npos ? 0 : bracket);
  if (colon == absl::string_view::npos) return {element, "1"};
  return {element.substr(0, colon), element.substr(colon + 1)};
}

// One line of a hostfile, without its comment.
absl::Status ReadLine(absl::string_view line, HostCollector& hosts) {
  // Open MPI allows spaces around '='.
  const std::string tight = absl::StrReplaceAll(
      absl::StrJoin(
          absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty()),
          " "),
      {{" = ", "="}, {"= ", "="}, {" =", "="}});
  const std::vector<absl::string_view> words =
      absl::StrSplit(tight, ' ', absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  absl::string_view slots = "1";
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> setting =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    if (setting.first == "slots") {
      slots = setting.second;
    } else if (setting.first != "max_slots" && setting.first != "max-slots") {
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(words[i]), " is neither slots=N nor max_slots=N"));
    }
  }
  return hosts.Add(words[0], slots);
}

}  // namespace

std::string Quoted(absl::string_view text) {
  const bool is_long = text.size() > kMaxQuotedBytes;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxQuotedBytes)),
                      is_long ? "...\"" : "\"");
}

absl::StatusOr<std::vector<Host>> ParseHosts(absl::string_view list) {
  HostCollector hosts;
  for (const absl::string_view element : absl::StrSplit(list, ',')) {
    const auto [name, slots] = SplitSlots(absl::StripAsciiWhitespace(element));
    RETURN_IF_ERROR(hosts.Add(name, slots));
  }
  return std::move(hosts).Finish();
}

absl::StatusOr<std::vector<Host>> ParseHostfile(absl::string_view text) {
  HostCollector hosts;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    RETURN_IF_ERROR(ReadLine(line.substr(0, line.find('#')), hosts))
        << "line " << number;
  }
  return std::move(hosts).Finish();
}

}  // namespace parasol
