package anonymize

// RiskMeasures of a release, in [0, 1]. The prosecutor knows that a person is
// in the release; the journalist is taken to know no larger population, which
// makes his risk that of the prosecutor; the marketer wants as many right
// matches as possible, and expects the average ([Dankar2010]).
type RiskMeasures struct {
	HighestProsecutor float64 // 1 / smallest class
	AverageProsecutor float64 // mean over subjects: classes / subjects
	AverageOfClasses  float64 // mean over classes of 1 / size
	HighestJournalist float64
	AverageJournalist float64
	Marketer          float64
	ShareUnique       float64 // of subjects alone in their class
	ShareAtHighest    float64 // of subjects at the highest risk
}

func measureRisk(c *classes) RiskMeasures {
	smallest, total, inverse, unique := c.subjects[0], 0.0, 0.0, 0.0
	for _, n := range c.subjects {
		smallest = min(smallest, n)
		total += float64(n)
		inverse += 1 / float64(n)
		if n == 1 {
			unique++
		}
	}
	atHighest := 0.0
	for _, n := range c.subjects {
		if n == smallest {
			atHighest += float64(n)
		}
	}
	classes := float64(c.count())
	m := RiskMeasures{
		HighestProsecutor: 1 / float64(smallest), AverageProsecutor: classes / total,
		AverageOfClasses: inverse / classes, ShareUnique: unique / total,
		ShareAtHighest: atHighest / total,
	}
	m.HighestJournalist, m.AverageJournalist, m.Marketer = m.HighestProsecutor, m.AverageProsecutor,
		m.AverageProsecutor
	return m
}
