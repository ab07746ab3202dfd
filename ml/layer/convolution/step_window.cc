#include "ml/layer/convolution/step_window.h"

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"

namespace parasol {

absl::StatusOr<WindowAxis> FitSteps(const Shape& shape,
                                    const job::Conv1D& spec) {
  if (shape.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("needs [steps, channels], not ", ShapeText(shape)));
  }
  for (const int64_t number :
       {spec.kernel_size(), spec.stride(), spec.dilation_rate()}) {
    if (number >= 1 && number <= kMaxWindowSteps) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("kernel_size, stride or dilation_rate is ", number,
                     ", not between 1 and ", kMaxWindowSteps));
  }
  const int64_t reach = (spec.kernel_size() - 1) * spec.dilation_rate() + 1;
  if (spec.padding() == job::CAUSAL) {
    return WindowAxis{.input = shape[0],
                      .window = reach,
                      .stride = spec.stride(),
                      .before = reach - 1,
                      .output = (shape[0] - 1) / spec.stride() + 1};
  }
  const WindowAxis steps =
      FitWindow(shape[0], reach, spec.stride(),
                spec.padding() == job::SAME ? WindowPadding::kSame
                                            : WindowPadding::kValid);
  if (steps.output >= 1) return steps;
  return absl::InvalidArgumentError(
      absl::StrCat("a window of ", reach, " steps does not fit into ", shape[0],
                   ": padding: SAME pads it"));
}

}  // namespace parasol
