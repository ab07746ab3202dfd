#include "ml/device/device_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace parasol {
namespace {

constexpr char kForms[] =
    "there is no such device; use auto, cpu, cpu:N or cuda:N, N from 0 to 1023";
constexpr int kMaxIndex = 1023;

}  // namespace

std::string DeviceName::ToString() const {
  return absl::StrCat(is_cuda ? "cuda:" : "cpu:", index);
}

absl::StatusOr<DeviceName> ParseDeviceName(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  absl::string_view rest = lower;
  for (const absl::string_view place :
       {"/job:localhost", "/replica:0", "/task:0"}) {
    absl::ConsumePrefix(&rest, place);
  }
  if (!absl::ConsumePrefix(&rest, "/device:")) absl::ConsumePrefix(&rest, "/");
  DeviceName device;
  device.is_cuda =
      absl::ConsumePrefix(&rest, "cuda") || absl::ConsumePrefix(&rest, "gpu");
  if (!device.is_cuda && !absl::ConsumePrefix(&rest, "cpu")) {
    return absl::InvalidArgumentError(kForms);
  }
  if (rest.empty()) return device;
  const bool is_number =
      absl::ConsumePrefix(&rest, ":") && !rest.empty() &&
      std::all_of(rest.begin(), rest.end(), absl::ascii_isdigit) &&
      absl::SimpleAtoi(rest, &device.index);
  if (is_number && device.index <= kMaxIndex) return device;
  return absl::InvalidArgumentError(kForms);
}

}  // namespace parasol
