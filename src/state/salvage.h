// Salvage: what can still be read of a damaged SQLite file, copied into a fresh one.
//
// For files whose pages are damaged or missing, where SQLite refuses the file as a whole. Of the
// journal the rows up to the first that cannot be read are taken, for what follows a hole cannot be
// folded; of the other tables whatever can be reached from either end. The damaged file is only
// read. Whether the rows themselves are sound is for Store::Repair() to find.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::state {

// `fresh` does not exist yet; `schema` makes its tables.
Result<void> Salvage(const std::string& damaged, const std::string& fresh, const char* schema);

}  // namespace muster::state
