// Where the source tree of this build lies, for tests that read its examples, scenarios and golden
// files. Only test programs link it (muster_tree): the path is compiled into this one file, so that
// every other object is the same in each clone and ccache shares them.
#pragma once

#include <string>

namespace muster {

[[nodiscard]] std::string SourceTree();

}  // namespace muster
