#ifndef PARASOL_TOOL_CHECKPOINT_ALIGNED_TEXT_H_
#define PARASOL_TOOL_CHECKPOINT_ALIGNED_TEXT_H_

#include <string>
#include <vector>

namespace parasol {

// Returns lines of columns, each as wide as its longest word; the first one is
// to the left, and the others to the right. Words are shown as OneLine() has
// them. Pure.
std::string AlignedText(const std::vector<std::vector<std::string>>& rows);

}  // namespace parasol

#endif  // PARASOL_TOOL_CHECKPOINT_ALIGNED_TEXT_H_
