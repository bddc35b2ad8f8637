#include "base/tree.h"

namespace muster {

std::string SourceTree() { return MUSTER_SOURCE_DIR; }

}  // namespace muster
