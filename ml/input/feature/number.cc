#include "ml/input/feature/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <system_error>

#include "absl/strings/numbers.h"

namespace parasol {
namespace {

constexpr double kPowersOfTen[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6, 1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14};
constexpr size_t kMaxExactDigits = 15;
// A number of 18 digits is below 2^63.
constexpr size_t kMaxWholeDigits = 18;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

absl::string_view WithoutPlus(absl::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  return text;
}

// Numbers of up to 15 digits without exponent, which is nearly all of them:
// digits and power of ten are exact, so their quotient is rounded once.
std::optional<double> ParseShort(absl::string_view text) {
  const bool negative = text.front() == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > kMaxExactDigits) return std::nullopt;
  uint64_t digits = 0;
  size_t i = 0;
  for (; i < text.size() && IsDigit(text[i]); ++i) {
    digits = digits * 10 + (text[i] - '0');
  }
  double value = static_cast<double>(digits);
  if (i < text.size()) {
    if (text[i] != '.' || text.size() == 1) return std::nullopt;
    const size_t point = i++;
    for (; i < text.size() && IsDigit(text[i]); ++i) {
      digits = digits * 10 + (text[i] - '0');
    }
    if (i < text.size()) return std::nullopt;
    value = static_cast<double>(digits) / kPowersOfTen[i - point - 1];
  }
  return negative ? -value : value;
}

// Returns the number of up to 18 digits without a sign, which is nearly all of
// them.
std::optional<uint64_t> ParseDigits(absl::string_view text) {
  if (text.empty() || text.size() > kMaxWholeDigits) return std::nullopt;
  uint64_t number = 0;
  for (const char c : text) {
    if (!IsDigit(c)) return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

template <typename Integer>
std::optional<Integer> ParseWhole(absl::string_view text) {
  if (const auto digits = ParseDigits(text)) return *digits;
  text = WithoutPlus(text);
  Integer value;
  const auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<double> ParseNumber(absl::string_view text) {
  text = WithoutPlus(text);
  if (text.empty()) return std::nullopt;
  if (const auto value = ParseShort(text)) return value;
  double value;
  const auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ptr != text.data() + text.size()) return std::nullopt;
  // Does not tell the too small from the too large; Abseil does.
  if (parsed.ec == std::errc::result_out_of_range) {
    if (!absl::SimpleAtod(text, &value)) return std::nullopt;
  } else if (parsed.ec != std::errc()) {
    return std::nullopt;
  }
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

std::optional<int64_t> ParseInteger(absl::string_view text) {
  return ParseWhole<int64_t>(text);
}

std::optional<uint64_t> ParseId(absl::string_view text) {
  if (const auto number = ParseWhole<uint64_t>(text)) return number;
  const auto negative = ParseWhole<int64_t>(text);
  if (!negative.has_value()) return std::nullopt;
  return static_cast<uint64_t>(*negative);
}

bool IsInteger(absl::string_view text) {
  text = WithoutPlus(text);
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

}  // namespace parasol
