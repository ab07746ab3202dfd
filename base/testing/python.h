#ifndef PARASOL_BASE_TESTING_PYTHON_H_
#define PARASOL_BASE_TESTING_PYTHON_H_

#include <string>
#include <vector>

#include "base/subprocess.h"

namespace parasol {

// Runs a Python program, with what other programs write and read beside it:
// PARASOL_PYTHON, or else the one that tests/python/install has made, or else
// python3. Waits for two minutes at most.
CompletedProcess RunPython(const std::string& program,
                           const std::vector<std::string>& arguments);

// Returns an empty text if that Python has all these modules ("numpy, torch"),
// or else why a test that needs them is skipped.
std::string PythonLacks(const std::string& modules);

}  // namespace parasol

#endif  // PARASOL_BASE_TESTING_PYTHON_H_
