#ifndef PARASOL_TESTS_CLASS_SIZES_H_
#define PARASOL_TESTS_CLASS_SIZES_H_

#include <string>
#include <vector>

#include "tests/source_tree.h"

namespace parasol {

// How much a reader of a class has to hold in mind.
struct ClassSize {
  std::string name;
  // Overloads count one each; constructors, destructors and deleted functions
  // do not count.
  int public_methods = 0;
  int fields = 0;  // constants do not count
};

// Returns the classes that `file` defines, nested ones included, in the order
// of their definitions. Structs are values and left out. The parser is rough:
// it knows the declarations that clang-format leaves in this tree.
std::vector<ClassSize> ClassSizes(const SourceFile& file);

}  // namespace parasol

#endif  // PARASOL_TESTS_CLASS_SIZES_H_
