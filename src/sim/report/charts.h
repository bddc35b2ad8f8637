// Charts: how samples are shown, each as a function from values to a drawing of a given width.
//
// A chart chooses its own height. Its size is bounded however many values there are: what is finer
// than a reader could see is thinned out or averaged. With no values it is an empty frame.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/report/svg.h"

namespace muster::sim::report {

struct Sample {
  std::string name;
  std::vector<double> values;
};

// The share of times that are at most so long, on a logarithmic axis; a line a sample.
Drawing DrawDistribution(const std::vector<Sample>& times_s, const std::string& title,
                         double width);

// From `at_s` to the next one.
struct Step {
  double at_s = 0;
  double value = 0;
};
// The same with at most so many steps: the mean over time of as many equal parts.
std::vector<Step> Thinned(std::vector<Step> steps, double to_s, std::size_t most);

// A value that changes in time, 0 to 100, as an area; one below the other, on the same axes.
struct Panel {
  std::string name;
  std::string note;  // beside it
  std::vector<Step> steps;
  double to_s = 0;
};
Drawing DrawPanels(const std::vector<Panel>& panels, double width);

// A bar from 0 to the mean, with the range across its end and the mean with its unit beside it.
// `to`: where the axis ends at least.
Drawing DrawBars(const std::vector<Sample>& samples, const std::string& title, double to,
                 double width, const std::string& unit = " %");

// Values at points of an axis, a line a curve with a dot at each point. Both axes begin at 0.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  // by the first
};
Drawing DrawCurves(const std::vector<Curve>& curves, const std::string& x_title,
                   const std::string& y_title, double width);

// A dot a value, on an axis that shows their range alone, with a line at the mean.
Drawing DrawDots(const std::vector<Sample>& samples, const std::string& title, double width);

double Mean(const std::vector<double>& values);
// Of no values: 0.
double Least(const std::vector<double>& values);
double Most(const std::vector<double>& values);

}  // namespace muster::sim::report
