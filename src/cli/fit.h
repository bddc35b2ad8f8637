// Fit: what is written anew every second, cut to the window so that it stays in its place.
//
// Lines that do not fit are counted on the last one. Talk on standard error goes below, where that
// is the same terminal. Only for a standard output that is a terminal.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace muster::cli {

// As many lines as leave the last row of the window empty, where the cursor then stands.
std::string FitLines(std::string_view text, std::size_t rows, std::size_t columns);

// Clears the screen and shows what `print` writes to std::cout.
void PrintInWindow(const std::function<void()>& print);

}  // namespace muster::cli
