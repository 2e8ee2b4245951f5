package identify

import "strings"

// givenNames are frequent names of people in several languages, none of which
// is a word for a colour, a trade or a place that columns hold.
var givenNames = func() map[string]bool {
	out := make(map[string]bool)
	for name := range strings.FieldsSeq(`
		james john robert michael william david richard joseph thomas charles christopher
		daniel matthew anthony mark donald steven paul andrew joshua kenneth kevin brian
		george timothy ronald edward jason jeffrey ryan jacob gary nicholas eric jonathan
		stephen larry justin scott brandon benjamin samuel gregory alexander patrick frank
		raymond jack dennis jerry tyler aaron jose adam nathan henry douglas zachary peter
		kyle noah ethan jeremy walter christian keith roger terry harry sean mary patricia
		jennifer linda elizabeth barbara susan jessica sarah karen lisa nancy betty sandra
		margaret ashley kimberly emily donna michelle carol amanda melissa deborah stephanie
		rebecca sharon laura cynthia dorothy amy kathleen angela shirley brenda emma anna
		pamela nicole samantha katherine christine helen debra rachel carolyn janet maria
		catherine heather diane olivia julie joyce ruth lauren kelly christina joan evelyn
		judith andrea hannah jacqueline martha gloria teresa ann sara janice julia kathryn
		sophia alice jean hans peter klaus wolfgang jürgen jurgen günter gunter dieter manfred
		uwe heinz werner bernd stefan andreas matthias sabine monika petra ursula renate heike
		claudia birgit karin ingrid lukas leon finn jonas felix maximilian lena lea marie
		sophie johanna katharina pierre michel jacques philippe nicolas françois francois
		jean-pierre laurent sébastien camille chloé chloe manon léa isabelle nathalie sylvie
		françoise monique céline antonio manuel francisco javier carlos miguel rafael pedro
		pablo sergio luis jorge alejandro carmen josefa isabel dolores pilar rosa lucía lucia
		paula marta elena cristina giuseppe giovanni luigi marco andrea alessandro francesco
		matteo lorenzo giulia chiara valentina johannes cornelis jan willem hendrik pieter
		daan sem anneke saskia femke sanne lars erik karl anders johan nils mikael birgitta
		eva kerstin astrid ingrid freja jakub piotr krzysztof andrzej tomasz paweł pawel
		michał michal agnieszka katarzyna małgorzata malgorzata joanna magdalena ivan dmitri
		sergei alexei vladimir mikhail olga tatiana natalia irina svetlana mohammed muhammad
		mohamed ahmed ali hassan hussein omar ibrahim yusuf fatima aisha maryam zainab wei li
		ming jing xiao hiroshi takashi yuki haruto sakura kenji raj rahul amit sanjay vijay
		priya anita sunita deepak joão joao josé ana beatriz rodrigo thiago smith johnson
		williams jones garcía garcia miller davis rodriguez martinez hernandez lopez gonzalez
		wilson anderson thompson jackson robinson nguyen müller muller schmidt schneider
		fischer weber wagner becker hoffmann schulz dubois durand lefebvre rossi ferrari
		esposito jansen andersson johansson kowalski nowak ivanov petrov silva santos kim park
		tanaka suzuki singh kumar
	`) {
		out[name] = true
	}
	return out
}()
