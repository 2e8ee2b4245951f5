package demodata

var (
	cities = []string{
		"Ashford", "Brookhaven", "Cedar Falls", "Dunmore", "Eastport", "Fairmont", "Glenville", "Harrow",
		"Ironwood", "Juniper",
	}
	firstNames = []string{
		"Ada", "Ben", "Clara", "David", "Elena", "Frank", "Grace", "Hugo", "Ines", "Jonas", "Karin",
		"Liam", "Mara", "Nils",
		"Olga", "Paul", "Quinn", "Rosa", "Samir", "Tara", "Umar", "Vera", "Walter", "Xenia", "Yusuf",
		"Zoe",
	}
	lastNames = []string{
		"Abbott", "Becker", "Castillo", "Dubois", "Eriksen", "Fischer", "Garcia", "Hoffman", "Ito",
		"Jansen", "Kowalski",
		"Larsen", "Moreau", "Novak", "Okafor", "Petrov", "Quist", "Rossi", "Schmidt", "Tanaka", "Urban",
		"Vogel", "Weber", "Yilmaz",
	}
	races       = []string{"asian", "black", "hispanic", "native", "white"}
	raceWeights = []int{60, 130, 180, 12, 618}
)

// condition is a main diagnosis with its ICD-9-CM code and the ward that
// treats it; weight is how common it is.
type condition struct {
	name, code, ward string
	fromAge, weight  int
}

var conditions = []condition{
	{"hypertension", "401.9", "internal medicine", 30, 900},
	{"type 2 diabetes", "250.00", "internal medicine", 25, 620},
	{"hyperlipidemia", "272.4", "internal medicine", 30, 560},
	{"asthma", "493.90", "pulmonology", 0, 420},
	{"depression", "311", "psychiatry", 12, 400},
	{"influenza", "487.1", "internal medicine", 0, 380},
	{"low back pain", "724.2", "orthopedics", 18, 360},
	{"pneumonia", "486", "pulmonology", 0, 300},
	{"atrial fibrillation", "427.31", "cardiology", 40, 260},
	{"heart failure", "428.0", "cardiology", 45, 240},
	{"osteoarthritis", "715.90", "orthopedics", 45, 240},
	{"urinary tract infection", "599.0", "internal medicine", 0, 230},
	{"appendicitis", "540.9", "surgery", 3, 150},
	{"hip fracture", "820.8", "surgery", 55, 140},
	{"stroke", "434.91", "neurology", 40, 130},
	{"epilepsy", "345.90", "neurology", 0, 90},
	{"breast cancer", "174.9", "oncology", 30, 90},
	{"colon cancer", "153.9", "oncology", 40, 70},
	{"schizophrenia", "295.90", "psychiatry", 16, 40},
	{"multiple sclerosis", "340", "neurology", 18, 30},
	{"HIV", "042", "internal medicine", 15, 20},
	{"cystic fibrosis", "277.00", "pulmonology", 0, 8},
	{"huntington disease", "333.4", "neurology", 30, 3},
	{"fatal familial insomnia", "046.72", "neurology", 30, 1},
}

// chapters are those of ICD-9-CM by their last category.
var chapters = []struct{ last, name string }{
	{"139", "infectious and parasitic diseases"},
	{"239", "neoplasms"},
	{"279", "endocrine, nutritional and metabolic diseases"},
	{"289", "diseases of the blood"},
	{"319", "mental disorders"},
	{"389", "diseases of the nervous system"},
	{"459", "diseases of the circulatory system"},
	{"519", "diseases of the respiratory system"},
	{"579", "diseases of the digestive system"},
	{"629", "diseases of the genitourinary system"},
	{"679", "pregnancy and childbirth"},
	{"709", "diseases of the skin"},
	{"739", "diseases of the musculoskeletal system"},
	{"759", "congenital anomalies"},
	{"779", "conditions of the perinatal period"},
	{"799", "symptoms and signs"},
	{"999", "injury and poisoning"},
}

var conditionWeights = func() []int {
	weights := make([]int, len(conditions))
	for i, c := range conditions {
		weights[i] = c.weight
	}
	return weights
}()
