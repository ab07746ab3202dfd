#include "ml/layer/image_window.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/field_checks.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Largest window and stride, in pixels: the product of two is an int32.
constexpr int64_t kMaxPixels = 1 << 15;

std::string Text(absl::Span<const int64_t> numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]");
}

absl::StatusOr<std::array<int64_t, 2>> Pair(absl::string_view name,
                                            absl::Span<const int64_t> numbers) {
  if (numbers.size() != 1 && numbers.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", Text(numbers),
                     ": set height and width, or one number for both"));
  }
  for (const int64_t number : numbers) {
    if (number >= 1 && number <= kMaxPixels) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", number, ", not between 1 and ", kMaxPixels));
  }
  return std::array<int64_t, 2>{numbers.front(), numbers.back()};
}

}  // namespace

absl::Status CheckImage(const Shape& image) {
  if (image.size() == 3) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "needs images [height, width, channels], not ", Text(image)));
}

absl::Status RequirePixels(const std::string& path,
                           absl::Span<const int64_t> numbers) {
  if (numbers.empty()) return Missing(path);
  if (numbers.size() > 2) {
    return Fault(path, absl::StrCat(numbers.size(),
                                    " numbers, not height and width, or one "
                                    "for both"));
  }
  return RequireAllInRange(path, numbers, 1, kMaxPixels);
}

absl::Status RequireImagePadding(const std::string& path,
                                 job::Padding padding) {
  if (padding != job::CAUSAL) return absl::OkStatus();
  return Fault(absl::StrCat(path, ".padding"),
               "CAUSAL is for conv1d: choose VALID or SAME");
}

absl::StatusOr<ImageWindow> FitImageWindow(const Shape& image,
                                           absl::Span<const int64_t> size,
                                           absl::Span<const int64_t> stride,
                                           job::Padding padding) {
  RETURN_IF_ERROR(CheckImage(image));
  ASSIGN_OR_RETURN(const auto window, Pair("the window's size", size));
  ASSIGN_OR_RETURN(const auto step, Pair("stride", stride));
  if (padding == job::CAUSAL) {
    return absl::InvalidArgumentError("padding is CAUSAL, which is for conv1d");
  }
  const WindowPadding how =
      padding == job::SAME ? WindowPadding::kSame : WindowPadding::kValid;
  ImageWindow fit = {.height = FitWindow(image[0], window[0], step[0], how),
                     .width = FitWindow(image[1], window[1], step[1], how),
                     .channels = image[2]};
  if (fit.height.output < 1 || fit.width.output < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a window of ", window[0], "x", window[1],
                     " does not fit into an image of ", image[0], "x", image[1],
                     ": padding: SAME pads it"));
  }
  return fit;
}

}  // namespace parasol
