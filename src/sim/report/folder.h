// Folder: where a report is written, and what may be written over.
//
// A folder with anything in it is left alone unless it holds a report: `index.html` says so itself.
// With `over` that one is replaced, its own plots of another time included, and nothing else is
// touched. There is no way to have a folder of another kind taken: that would be one slip away from
// a lost folder, and another name costs nothing.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sim/report/page.h"

namespace muster::sim::report {

// Before the long work: whether WriteReport may begin.
Result<void> CheckFolder(const std::string& folder, bool over);

// The page first: whoever finds it finds a whole one, and knows what the folder is.
Result<void> WriteReport(const std::string& folder, const std::vector<File>& files, bool over);

}  // namespace muster::sim::report
