#ifndef PARASOL_THIRD_PARTY_ARROW_ARROW_ERROR_H_
#define PARASOL_THIRD_PARTY_ARROW_ARROW_ERROR_H_

#include <arrow/status.h>

#include <string>

// Returns the number of arrow_shim.h for a failure of a store or an object.
int StoreCode(const arrow::Status& status);

// Returns its text, without what Google's library says of itself.
std::string StoreMessage(const arrow::Status& status);

#endif  // PARASOL_THIRD_PARTY_ARROW_ARROW_ERROR_H_
