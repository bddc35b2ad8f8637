// Queries: what a terminal would answer to, taken out of what is shown to it a second time.
//
// A program that asked "where is the cursor?" an hour ago does not wait for an answer any more; a
// terminal that is shown the question again answers all the same, as if its user had typed. What is
// kept are texts, colours, moves, modes, titles, links and sixel pictures. Strings to the terminal
// (OSC, DCS, APC) of any other kind go, since they ask or do something once. So do sequences that
// were broken off, lest two halves of what is left become a whole one. One pass.
#pragma once

#include <string>
#include <string_view>

namespace muster::shim {

std::string WithoutQueries(std::string_view shown);

}  // namespace muster::shim
